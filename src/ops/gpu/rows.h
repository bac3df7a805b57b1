// How the threads of a block share a row: assignment of vectors, and sums over all threads.
#pragma once

#include "ops/gpu/launch.h"
#include "ops/gpu/numbers.h"

namespace braid::ops::gpu {

struct TokenIndex {
  std::int64_t batch, token;
};

// 32 bits suffice for the rows of a grid and divide several times faster.
BRAID_DEVICE inline TokenIndex token_at(std::uint32_t row, std::int64_t tokens) {
  const auto batch = row / std::uint32_t(tokens);
  return {batch, row - batch * std::uint32_t(tokens)};
}

template <class T>
BRAID_DEVICE T* row_at(const Rows& rows, const TokenIndex& at) {
  return static_cast<T*>(rows.data) + at.batch * rows.batch + at.token * rows.token;
}

// Which vector a thread moves, in kernels with `part` blocks per row and one vector per thread.
template <class Block>
BRAID_DEVICE std::int64_t vector_of_thread(const Block& block) {
  return std::int64_t(block.part()) * block.size() + block.thread();
}

struct Plus {
  BRAID_DEVICE float operator()(float a, float b) const { return a + b; }
};
// NaN wins.
struct Larger {
  BRAID_DEVICE float operator()(float a, float b) const { return a > b || a != a ? a : b; }
};

template <class Block, class Op>
BRAID_DEVICE float over_lanes(Block& block, int lanes, float x, Op op) {
  for (int mask = lanes / 2; mask > 0; mask /= 2) x = op(x, block.shuffle_xor(x, mask));
  return x;
}

// Reduces `x` over all threads by `op`, whose neutral element must be 0; every thread gets the
// result.
template <class Block, class Op>
BRAID_DEVICE float over_block(Block& block, float x, Op op) {
  const int lane = block.thread() % kLanes, warp = block.thread() / kLanes;
  x = over_lanes(block, kLanes, x, op);
  block.sync();  // all have read an earlier call's values
  if (lane == 0) block.shared(warp) = x;
  block.sync();
  return over_lanes(block, kLanes, lane < block.size() / kLanes ? block.shared(lane) : 0.f, op);
}

template <class Block>
BRAID_DEVICE float block_sum(Block& block, float x) {
  return over_block(block, x, Plus());
}

}  // namespace braid::ops::gpu
