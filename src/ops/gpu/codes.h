// The kernels around products of 8-bit codes. For `run` see tokens.h; the formulas are those of
// weights/int8.h and ops/linear.cc, and so are the roundings.
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

template <class T, int N, class Block>
BRAID_DEVICE void run(const QuantizeRows& work, Block& block) {
  const std::int64_t row_index = block.row();
  KeptRow<N, kVectorsOfRow<N>> row;
  row.read(whole_block(block), row_at<T>(work.x, {0, row_index}), work.width);
  const float largest = over_block(block, row.largest(), Larger());
  const float wish = rounded<T>(largest / 127.5f), smallest = 1.1920929e-7f;
  const float scale = wish < smallest ? smallest : wish;
  if (block.thread() == 0) work.scales[row_index] = scale;
  const float inverse = 1 / scale;
  std::int8_t* const codes = work.codes + row_index * work.width;
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
  const auto codes = load<std::int8_t, N>(work.codes + row_begin, i);
  const float scale = work.scales[block.row()];
  Floats<N> y;
  for (int k = 0; k < N; ++k) y.values[k] = float(codes.values[k]) * scale;
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
