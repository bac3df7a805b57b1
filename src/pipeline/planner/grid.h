// Layouts as the planner sees them: all possible for a number of ranks, and each rank's place.
#pragma once

#include <string>
#include <vector>

#include "comm/mesh.h"

namespace braid {

std::string layout_name(const Degrees& grid);  // "ring 2 x tp 4 (1:1:2:2)": degrees above 1

// Every layout of so many ranks: the ordered products of six factors.
std::vector<Degrees> grids_of(int ranks);

// A rank's index along each axis.
struct Place {
  int dp, cfg, pp, ring, ulysses, tp;
};

Place place_of(const Degrees& grid, int rank);

// Rank distance between neighbours along an axis, by its degree: &Degrees::pp.
int stride_along(const Degrees& grid, int Degrees::*degree);

// Whether one of the groups of `ranks` ranks `stride` apart has members on two hosts, where each
// host has so many ranks: all groups then pass on at the pace of the network.
bool a_group_crosses(int ranks_per_host, const Degrees& grid, int stride, int ranks);

}  // namespace braid
