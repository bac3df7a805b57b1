// Layouts as the planner sees them: all that so many ranks could have, and where a rank lies.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"

namespace braid {

std::string layout_name(const Degrees& grid);  // "ring 2 x tp 4": degrees above 1; "one rank"

// Every layout of so many ranks: the ordered products of six factors.
std::vector<Degrees> grids_of(int ranks);

// Which of the ranks along each axis a rank is.
struct Place {
  int dp, cfg, layers, ring, ulysses, tp;
};

Place place_of(const Degrees& grid, int rank);

// How far apart neighbours along each axis lie in the order of ranks.
Place strides_of(const Degrees& grid);

}  // namespace braid
