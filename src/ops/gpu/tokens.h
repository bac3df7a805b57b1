// The kernels: the work of one thread of a block. Each is run<T, N>(work, block), for numbers of
// type T, N at once. `block` provides thread() of size(), and row() and part() in the grid. It also
// provides what threads share: shuffle_xor among kLanes neighbours, shared(i) cells, and sync().
// All threads of a block reach every shuffle and sync.
#pragma once

#include <cmath>

#include "ops/gpu/codes.h"
#include "ops/gpu/kept_row.h"
#include "ops/gpu/launch.h"

namespace braid::ops::gpu {

template <class T, int N>
BRAID_DEVICE Floats<N> rounded(Floats<N> x) {
  for (int k = 0; k < N; ++k) x.values[k] = rounded<T>(x.values[k]);
  return x;
}

// Normalises a row that the threads of a block keep.
template <class T, int N, class Block>
BRAID_DEVICE void norm(const ModulatedNorm& work, const TokenIndex& at,
                       KeptRow<N, kVectorsOfRow<N>>& row, Block& block) {
  const float mean = block_sum(block, row.sum()) / float(work.width);
  const float variance = block_sum(block, row.sum_of_squares(mean)) / float(work.width);
  const float factor = 1 / sqrtf(variance + work.eps);
  const T* const scale = row_at<T>(work.scale, {at.batch, 0});
  const T* const shift = row_at<T>(work.shift, {at.batch, 0});
  const auto normed = [&](std::int64_t i, const Floats<N>& x) {
    const auto times = load_floats<T, N>(scale, i), plus = load_floats<T, N>(shift, i);
    Floats<N> out;
    for (int k = 0; k < N; ++k)
      out.values[k] = (x.values[k] - mean) * factor * (1 + times.values[k]) + plus.values[k];
    return out;
  };
  if (work.coded.codes) {
    row.replace([&](std::int64_t i, const Floats<N>& x) { return rounded<T>(normed(i, x)); });
    return write_float8(work.coded, block.row(), work.width, row, block);
  }
  T* const y = row_at<T>(work.y, at);
  row.for_each([&](std::int64_t i, const Floats<N>& x) { store<T, N>(y, i, normed(i, x)); });
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const ModulatedNorm& work, Block& block) {
  const auto at = token_at(block.row(), work.tokens);
  KeptRow<N, kVectorsOfRow<N>> row;
  row.read(whole_block(block), row_at<T>(work.x, at), work.width);
  norm<T, N>(work, at, row, block);
}

// Clips float16 to +-65504. NaN stays NaN.
BRAID_DEVICE inline float clipped(float x, Float16) {
  return x > 65504.f ? 65504.f : x < -65504.f ? -65504.f : x;
}
template <class T>
BRAID_DEVICE float clipped(float x, T) {
  return x;
}

// Stores vector i of the sum and returns it as stored.
template <class T, int N>
BRAID_DEVICE Floats<N> gated_sum(const GatedResidual& work, const TokenIndex& at, std::int64_t i) {
  const auto residual = load_floats<T, N>(row_at<T>(work.residual, at), i);
  const auto gate = load_floats<T, N>(row_at<T>(work.gate, {at.batch, 0}), i);
  const auto y = load_floats<T, N>(row_at<T>(work.y, at), i);
  Floats<N> sum;
  for (int k = 0; k < N; ++k)
    sum.values[k] = rounded<T>(clipped(residual.values[k] + gate.values[k] * y.values[k], T()));
  store<T, N>(row_at<T>(work.sum, at), i, sum);
  return sum;
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const GatedResidual& work, Block& block) {
  const auto i = vector_of_thread(block);
  if (i >= work.width / N) return;
  gated_sum<T, N>(work, token_at(block.row(), work.tokens), i);
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const GatedResidualNorm& work, Block& block) {
  const auto at = token_at(block.row(), work.gated.tokens);
  KeptRow<N, kVectorsOfRow<N>> row;
  row.fill(whole_block(block), work.gated.width,
           [&](std::int64_t i) { return gated_sum<T, N>(work.gated, at, i); });
  norm<T, N>(work.norm, at, row, block);
}

// The tanh approximation, 0.5 x (1 + tanh(u)) with u = sqrt(2/pi) (x + 0.044715 x^3), as
// x / (1 + exp(-2 u)). For large -u the exponential is infinite and the result zero. Results in 16
// bits need neither an exact exponential nor an exact quotient.
BRAID_DEVICE inline float power_of_gelu(float x) {
  return -1.5957691216057308f * (x + 0.044715f * x * x * x);
}
template <class T>
BRAID_DEVICE float gelu_of(float x, T) {
  return rough_quotient(x, 1 + rough_exponential(power_of_gelu(x)));
}
BRAID_DEVICE inline float gelu_of(float x, float) { return x / (1 + expf(power_of_gelu(x))); }

// Vector i of a token's [left | gelu(right)].
template <class T, int N>
BRAID_DEVICE Floats<N> joined_vector(const JoinedGelu& work, const TokenIndex& at, std::int64_t i) {
  const auto left = work.left_width / N;
  if (i < left) return load_floats<T, N>(row_at<T>(work.left, at), i);
  auto x = load_floats<T, N>(row_at<T>(work.right, at), i - left);
  for (int k = 0; k < N; ++k) x.values[k] = gelu_of(x.values[k], T());
  return x;
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const JoinedGelu& work, Block& block) {
  const auto i = vector_of_thread(block);
  if (i >= (work.left_width + work.right_width) / N) return;
  const auto at = token_at(block.row(), work.tokens);
  store<T, N>(row_at<T>(work.y, at), i, joined_vector<T, N>(work, at, i));
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const JoinedGeluCodes& work, Block& block) {
  const auto at = token_at(block.row(), work.joined.tokens);
  const auto width = work.joined.left_width + work.joined.right_width;
  KeptRow<N, kVectorsOfRow<N>> row;
  row.fill(whole_block(block), width,
           [&](std::int64_t i) { return rounded<T>(joined_vector<T, N>(work.joined, at, i)); });
  write_float8(work.coded, block.row(), width, row, block);
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const EulerStep& work, Block& block) {
  const auto i = std::int64_t(block.row()) * block.size() + block.thread();
  if (i >= work.count / N) return;
  const auto x = load_floats<T, N>(static_cast<const T*>(work.x), i);
  const auto v = load_floats<T, N>(static_cast<const T*>(work.v), i);
  Floats<N> y;
  for (int k = 0; k < N; ++k) y.values[k] = x.values[k] + rounded<T>(work.dt * v.values[k]);
  store<T, N>(static_cast<T*>(work.y), i, y);
}

}  // namespace braid::ops::gpu
