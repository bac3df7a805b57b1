// The kernel for sums over devices. For `run` see tokens.h.
#pragma once

#include "ops/gpu/tokens.h"

namespace braid::ops::gpu {

// Vector `i` of the parts' sum, with the bias.
template <class T, int N>
BRAID_DEVICE Floats<N> sum_of_parts(const AddParts& work, std::int64_t i, std::uint32_t column) {
  auto sum = load_floats<T, N>(static_cast<const T*>(work.parts[0]), i);
  const auto add = [&](const void* data, std::int64_t at) {
    const auto x = load_floats<T, N>(static_cast<const T*>(data), at);
    for (int k = 0; k < N; ++k) sum.values[k] += x.values[k];
  };
  for (int p = 1; p < AddParts::kMostParts; ++p)  // the loop unrolls, so parts[] stays a parameter
    if (p < work.num_parts) add(work.parts[p], i);
  if (work.bias) add(work.bias, column);
  return sum;
}

// Vectors are numbered in 32 bits, which divide several times faster.
template <class T, int N, class Block>
BRAID_DEVICE void run(const AddParts& work, Block& block) {
  const auto i = std::int64_t(block.row()) * block.size() + block.thread();
  if (i >= work.count / N) return;
  const auto number = std::uint32_t(work.begin / N + i), of_row = std::uint32_t(work.width / N);
  const auto row = number / of_row, column = number - row * of_row;
  auto y = sum_of_parts<T, N>(work, i, column);
  if (work.residual.data) {
    const auto at = token_at(row, work.tokens);
    const auto residual = load_floats<T, N>(row_at<T>(work.residual, at), column);
    const auto gate = load_floats<T, N>(row_at<T>(work.gate, {at.batch, 0}), column);
    for (int k = 0; k < N; ++k)
      y.values[k] = clipped(residual.values[k] + gate.values[k] * y.values[k], T());
  }
  store<T, N>(static_cast<T*>(work.y), i, y);
}

}  // namespace braid::ops::gpu
