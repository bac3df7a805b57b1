// Layouts as the planner sees them: how many ranks lie along each axis, and what share of a step a
// rank of such a layout has.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"

namespace braid {

// Ranks lie in the order of the members, the last fastest.
struct Grid {
  int dp = 1, cfg = 1, layers = 1, ring = 1, ulysses = 1, tp = 1;

  Degrees degrees() const {
    return {.dp = dp, .cfg = cfg, .layers = layers, .ring = ring, .ulysses = ulysses, .tp = tp};
  }
  int ranks() const { return dp * cfg * layers * ring * ulysses * tp; }
  bool operator==(const Grid&) const = default;
};

std::string to_string(const Grid& grid);  // "ring 2 x tp 4": degrees above 1; "one rank"

// Every grid of so many ranks: the ordered products of six factors.
std::vector<Grid> grids_of(int ranks);

// Which of the ranks along each axis a rank is.
struct Place {
  int dp, cfg, layers, ring, ulysses, tp;
};

Place place_of(const Grid& grid, int rank);

// How far apart neighbours along each axis lie in the order of ranks.
Place strides_of(const Grid& grid);

}  // namespace braid
