// The ranks of a run as a grid with named axes.
#pragma once

#include "comm/group.h"

namespace braid {

// How many ranks lie along each axis.
struct Degrees {
  int dp = 1;       // pictures are shared out
  int cfg = 1;      // branches of true guidance
  int layers = 1;   // runs of blocks; pictures follow each other through them
  int ring = 1;     // tokens, keys and values passed around
  int ulysses = 1;  // tokens, traded for heads
  int tp = 1;       // weights

  int product() const { return dp * cfg * layers * ring * ulysses * tp; }
  bool operator==(const Degrees&) const = default;
};

std::string to_string(const Degrees& degrees);  // "dp 1 x cfg 2 x layers 1 x ring 1 x ..."

// The groups a rank is in: along each axis, the ranks that differ from it in that axis alone.
// Tensor parallel ranks lie next to each other, then ulysses, ring, layers, cfg, dp.
struct Mesh {
  Group world, dp, cfg, stages, ring, ulysses, tp;
  Group context;  // ring x ulysses: all that share the tokens of one branch; ulysses varies fastest
  Group replica;  // all that work on the same pictures
  Degrees degrees;
};

// Collective. Throws InputError with the equation unless the degrees' product is the world's size.
Mesh make_mesh(const Group& world, const Degrees& degrees);

}  // namespace braid
