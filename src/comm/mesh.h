// The ranks of a run as a grid with named axes.
#pragma once

#include "comm/group.h"

namespace braid {

// The number of ranks along each axis.
struct Degrees {
  int dp = 1;       // pictures
  int cfg = 1;      // branches of true guidance
  int pp = 1;       // runs of blocks; pictures follow each other through them
  int ring = 1;     // tokens; keys and values are passed around
  int ulysses = 1;  // tokens, traded for heads
  int tp = 1;       // weights

  int product() const { return dp * cfg * pp * ring * ulysses * tp; }
  bool operator==(const Degrees&) const = default;
};

std::string to_string(const Degrees& degrees);  // "dp 1 x cfg 2 x pp 1 x ring 1 x ..."

// The groups of a rank: along each axis, the ranks that differ from it only in that axis. Tensor
// parallel ranks are adjacent, then ulysses, ring, pp, cfg, dp.
struct Mesh {
  Group world, dp, cfg, pp, ring, ulysses, tp;
  Group context;  // ring x ulysses: ranks that share one branch's tokens; ulysses varies fastest
  Group replica;  // all ranks that work on the same pictures
  Degrees degrees;
};

// Collective. Throws InputError with the equation unless the product of the degrees is the world's
// size.
Mesh make_mesh(const Group& world, const Degrees& degrees);

}  // namespace braid
