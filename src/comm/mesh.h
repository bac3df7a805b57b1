// The ranks of a run as a grid with named axes.
#pragma once

#include "braid/layout.h"
#include "comm/group.h"

namespace braid {

constexpr int kMostRanks = 1024;  // of a run, along one axis or along all

// The number of ranks along each axis.
struct Degrees {
  int dp = 1;       // pictures
  int cfg = 1;      // branches of true guidance
  int pp = 1;       // runs of blocks; pictures follow each other through them
  int ring = 1;     // tokens; keys and values are passed around
  int ulysses = 1;  // tokens, traded for heads
  int tp = 1;       // weights
  AxisShares shares = {};

  Shares of_dp() const { return {dp, shares.dp}; }
  Shares of_pp() const { return {pp, shares.pp}; }
  Shares of_ring() const { return {ring, shares.ring}; }
  Shares of_ulysses() const { return {ulysses, shares.ulysses}; }
  Shares of_tp() const { return {tp, shares.tp}; }
  Shares of_context() const;  // ring x ulysses: products of their shares
  int product() const { return dp * cfg * pp * ring * ulysses * tp; }
  bool operator==(const Degrees&) const = default;
};

// One axis of the grid: the only list of them.
struct Axis {
  const char* name;
  int Degrees::*degree;
  std::vector<int> AxisShares::*shares;  // null: its ranks always take alike

  Shares of(const Degrees& grid) const;
};
inline constexpr Axis kAxes[] = {  // the slowest first
    {"dp", &Degrees::dp, &AxisShares::dp},
    {"cfg", &Degrees::cfg, nullptr},
    {"pp", &Degrees::pp, &AxisShares::pp},
    {"ring", &Degrees::ring, &AxisShares::ring},
    {"ulysses", &Degrees::ulysses, &AxisShares::ulysses},
    {"tp", &Degrees::tp, &AxisShares::tp}};

constexpr int kMostShare = 1000;  // along one axis: products of two stay exact

// Throws InputError naming the axis whose shares do not fit its degree or exceed kMostShare.
void check_shares(const Degrees& degrees);

std::string to_string(const Degrees& degrees);  // "dp 1 x cfg 2 x pp 1 x ring 1 x ..."
// "ring=1:1,tp=3:2", as --shares takes it: the axes that have shares; empty if none has.
std::string to_string(const AxisShares& shares);

// The groups of a rank: along each axis, the ranks that differ from it only in that axis. Tensor
// parallel ranks are adjacent, then ulysses, ring, pp, cfg, dp.
struct Mesh {
  Group world, dp, cfg, pp, ring, ulysses, tp;
  Group context;  // ring x ulysses: ranks that share one branch's tokens; ulysses varies fastest
  Group replica;  // all ranks that work on the same pictures
  Degrees degrees;
};

// Collective. Throws InputError with the equation unless the product of the degrees is the world's
// size, and for shares that do not fit their degree.
Mesh make_mesh(const Group& world, const Degrees& degrees);

}  // namespace braid
