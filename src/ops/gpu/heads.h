// The kernel between a projection and attention. For `run` see tokens.h.
#pragma once

#include <cmath>

#include "ops/gpu/kept_row.h"
#include "ops/gpu/launch.h"

namespace braid::ops::gpu {

// The head shared by some lanes of a block. Lanes past the last head repeat its work, for the sake
// of the shuffles, and discard the result.
struct HeadIndex {
  TokenIndex at;
  std::int64_t head;
  int lane;
  bool is_extra;
};

// The part of a block. All threads of a block take the same branches.
template <class Block>
BRAID_DEVICE HeadsPart part_of_block(const NormRotate& work, const Block& block) {
  HeadsPart mine = work.parts[0];
  for (int p = 1; p < NormRotate::kMostParts; ++p)
    if (p < work.num_parts && block.row() >= work.parts[p].first_block) mine = work.parts[p];
  return mine;
}

template <class Block>
BRAID_DEVICE HeadIndex head_of_thread(const HeadsPart& part, int lanes, const Block& block) {
  const int heads_per_block = block.size() / lanes;
  const auto block_of_part = std::int64_t(block.row()) - part.first_block;
  const auto requested = block_of_part * heads_per_block + block.thread() / lanes;
  const auto index = std::uint32_t(requested < part.count ? requested : part.count - 1);
  const auto token = index / std::uint32_t(part.heads);
  return {token_at(token, part.tokens), index - token * std::uint32_t(part.heads),
          block.thread() % lanes, requested >= part.count};
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const NormRotate& work, Block& block) {
  const auto part = part_of_block(work, block);
  const auto mine = head_of_thread(part, work.lanes, block);
  const T* const x = row_at<T>(part.x, mine.at) + mine.head * part.x_head;
  KeptRow<N, kVectorsOfHead<N>> row;
  row.read({mine.lane, work.lanes}, x, work.width);
  const float squares = over_lanes(block, work.lanes, row.sum_of_squares(0), Plus());
  const float factor = 1 / sqrtf(squares / float(work.width) + work.eps);
  if (mine.is_extra) return;
  const float* const cos = part.cos + mine.at.token * work.width;
  const float* const sin = part.sin + mine.at.token * work.width;
  T* const y = row_at<T>(part.y, mine.at) + mine.head * part.y_head;
  row.for_each([&](std::int64_t i, const Floats<N>& kept) {
    const auto weight = load_floats<T, N>(static_cast<const T*>(part.weight), i);
    const auto c = load_floats<float, N>(cos, i), s = load_floats<float, N>(sin, i);
    Floats<N> out;
    for (int k = 0; k < N; k += 2) {
      const float even = kept.values[k] * factor * weight.values[k];
      const float odd = kept.values[k + 1] * factor * weight.values[k + 1];
      out.values[k] = even * c.values[k] - odd * s.values[k];
      out.values[k + 1] = odd * c.values[k + 1] + even * s.values[k + 1];
    }
    store<T, N>(y, i, out);
  });
}

}  // namespace braid::ops::gpu
