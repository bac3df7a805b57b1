// The kernels around products of 8-bit codes. For `run` see tokens.h; formulas and roundings are
// those of weights/codes and ops/linear.cc.
#pragma once

#include <cmath>

#include "ops/gpu/kept_row.h"
#include "ops/gpu/launch.h"

namespace braid::ops::gpu {

// Half to even. NaN becomes -128; its row's scale is NaN.
BRAID_DEVICE inline std::int8_t code_of(float x) {
  const float whole = rintf(x);
  return std::int8_t(!(whole > -128.f) ? -128.f : whole > 127.f ? 127.f : whole);
}

// Propagates NaN.
template <class T>
BRAID_DEVICE float scale_of(Codes form, float largest) {
  const bool is_int8 = form == Codes::kInt8;
  const float requested = is_int8 ? rounded<T>(largest / 127.5f) : largest / 448;
  const float smallest = is_int8 ? 1.1920929e-7f : 1.17549435e-38f;
  return requested < smallest ? smallest : requested;
}

// The numbers at places that differ by these bits: the low ones are within a vector, the others
// between lanes.
template <int N, class Block>
BRAID_DEVICE Floats<N> exchanged(Block& block, const Floats<N>& x, int places) {
  Floats<N> y;
  for (int k = 0; k < N; ++k) y.values[k] = x.values[k ^ (places % N)];
  if (places / N > 0)
    for (int k = 0; k < N; ++k) y.values[k] = block.shuffle_xor(y.values[k], places / N);
  return y;
}

template <int N>
BRAID_DEVICE Floats<N> plus(Floats<N> x, const Floats<N>& y) {
  for (int k = 0; k < N; ++k) x.values[k] += y.values[k];
  return x;
}

// Computes rotated() of weights/codes/rotation.h: half the sum of four, in pairs, minus the
// opposite one.
template <int N, class Block>
BRAID_DEVICE Floats<N> rotated(Block& block, Floats<N> x, int together) {
  for (int apart = 1; apart < N * kLanes; apart *= 4) {
    if (apart >= together) break;
    const auto pairs = plus(x, exchanged(block, x, apart));
    const auto sums = plus(pairs, exchanged(block, pairs, 2 * apart));
    const auto opposite = exchanged(block, x, 3 * apart);
    for (int k = 0; k < N; ++k) x.values[k] = sums.values[k] * .5f - opposite.values[k];
  }
  return x;
}

// The float8 codes of row `number`, which the threads of a block keep, and its scale.
template <int N, int kVectors, class Block>
BRAID_DEVICE void write_float8(const RowCodes& to, std::int64_t number, std::int64_t width,
                               const KeptRow<N, kVectors>& row, Block& block) {
  const float largest = over_block(block, row.largest(), Larger());
  const float scale = scale_of<float>(Codes::kFloat8, largest);
  if (block.thread() == 0) to.scales[number] = scale;
  auto* const codes = static_cast<Float8*>(to.codes) + number * width;
  row.for_each([&](std::int64_t i, Floats<N> x) {
    for (int k = 0; k < N; ++k) x.values[k] /= scale;
    store(codes, i, x);
  });
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const QuantizeRows& work, Block& block) {
  const std::int64_t row_index = block.row();
  KeptRow<N, kVectorsOfRow<N>> row;
  row.read(whole_block(block), row_at<T>(work.x, {0, row_index}), work.width);
  if (work.form == Codes::kFloat8)
    return write_float8({work.codes, work.scales}, row_index, work.width, row, block);
  const int together = work.rotated_together;
  if (together > 0) row.change_all([&](const Floats<N>& x) { return rotated(block, x, together); });
  const float largest = over_block(block, row.largest(), Larger());
  const float scale =
      together > 0 ? scale_of<float>(work.form, largest) : scale_of<T>(work.form, largest);
  if (block.thread() == 0) work.scales[row_index] = scale;
  const float inverse = 1 / scale;
  auto* const codes = static_cast<std::int8_t*>(work.codes) + row_index * work.width;
  row.for_each([&](std::int64_t i, const Floats<N>& x) {
    Vector<std::int8_t, N> out;
    for (int k = 0; k < N; ++k) out.values[k] = code_of(x.values[k] * inverse);
    reinterpret_cast<Vector<std::int8_t, N>*>(codes)[i] = out;
  });
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const Widen& work, Block& block) {
  const auto i = vector_of_thread(block);
  if (i >= work.width / N) return;
  const auto row_begin = std::int64_t(block.row()) * work.width;
  const float scale = work.scales[block.row()];
  auto y =
      work.form == Codes::kFloat8
          ? load_floats<Float8, N>(static_cast<const Float8*>(work.codes) + row_begin, i)
          : load_floats<std::int8_t, N>(static_cast<const std::int8_t*>(work.codes) + row_begin, i);
  for (int k = 0; k < N; ++k) y.values[k] *= scale;
  store<T, N>(static_cast<T*>(work.y) + row_begin, i, y);
}

template <class T, int N, class Block>
BRAID_DEVICE void run(const ScaleSums& work, Block& block) {
  const auto i = vector_of_thread(block);
  if (i >= work.width / N) return;
  const auto row_begin = std::int64_t(block.row()) * work.width;
  const auto sums = load<std::int32_t, N>(work.sums + row_begin, i);
  const auto scales = load<float, N>(work.row_scales, i);
  const float token_scale = work.token_scales[block.row()];
  Floats<N> y;
  for (int k = 0; k < N; ++k)
    y.values[k] = rounded<T>(float(sums.values[k]) * token_scale) * scales.values[k];
  if (work.bias) {
    const auto bias = load<float, N>(work.bias, i);
    for (int k = 0; k < N; ++k) y.values[k] += bias.values[k];
  }
  store<T, N>(static_cast<T*>(work.y) + row_begin, i, y);
}

}  // namespace braid::ops::gpu
