// Loops over rows of contiguous memory, for the operations between matrix products. Compiled once
// per instruction set; rows.cc says why that file contains nothing else.
#pragma once

#include <cstdint>

namespace braid::ops {

// Heads of one token. A head is contiguous, and the steps from one to the next are in numbers.
struct HeadRows {
  const void* x;
  void* y;
  std::int64_t x_step, y_step;
  std::int64_t count, width;
  std::int64_t to_next;  // numbers from `x` to that of the next token
};

// Arithmetic is in float32, and each result is rounded once, to nearest, ties to even, unless
// noted. Rows of bfloat16 are the upper halves of float32 numbers.
struct RowKernels {
  using Norm = void(const void* x, const void* scale, const void* shift, void* y,
                    std::int64_t width, float eps);
  using Gate = void(const void* residual, const void* gate, const void* y, void* out,
                    std::int64_t width);
  using Gelu = void(const void* x, void* y, std::int64_t count);
  using Rotate = void(const HeadRows& heads, const float* weight, const float* cos,
                      const float* sin, float eps);

  using RmsNorm = void(const void* x, const void* weight, void* y, std::int64_t width, float eps);
  using ModulatedRms = void(const void* x, const float* weight, const void* scale,
                            const void* shift, void* y, std::int64_t width, float eps);
  using RotateHalves = void(const HeadRows& heads, const void* cos, const void* sin);
  using Glu = void(const void* gate, const void* up, void* y, std::int64_t width);

  using Moments = void(const void* x, std::int64_t width, float* mean, float* squares);
  using Biased = void(const float* x, float bias, const void* residual, void* y,
                      std::int64_t width);
  using Silu = void(const void* x, float scale, float shift, void* y, std::int64_t width);
  using AddSquares = void(const void* x, float* sums, std::int64_t width);
  using PixelSilu = void(const void* x, const float* lengths, float scale, void* y,
                         std::int64_t width);
  using Doubled = void(const void* x, void* y, std::int64_t width);
  using Widened = void(const void* x, float* y, std::int64_t width);

  Norm* modulated_norm;        // (x - mean) / sqrt(variance + eps) * (1 + scale) + shift
  Gate* gated_residual;        // residual + gate * y
  Gelu* gelu;                  // tanh approximation
  Rotate* norm_rotate;         // x / rms(x) * weight, then pairs rotated; cos, sin twice per pair
  Moments* moments;            // mean, and the sum of squared deviations from it
  Biased* biased;              // x + bias, plus the residual unless null
  Silu* affine_silu;           // z / (1 + e^-z), z = x * scale + shift; y is not x
  Silu* affine_silu_wide;      // the same with y in float32
  AddSquares* add_squares;     // sums += x * x
  PixelSilu* pixel_silu;       // as affine_silu, z = x / length * scale, a length per number
  PixelSilu* pixel_silu_wide;  // the same with y in float32
  Doubled* doubled;            // each number of x twice; y is twice as wide
  Doubled* doubled_wide;       // the same with y in float32
  Widened* widened;            // x in float32

  RmsNorm* llama_rms_norm;           // x / rms(x), rounded, times weight
  RotateHalves* rotate_halves;       // pairs across the two halves; cos and sin once per pair
  RotateHalves* rotate_halves_wide;  // the same with cos and sin in float32
  Glu* swiglu;                       // gate / (1 + e^-gate) * up

  // x / rms(x) * (1 + weight), then * (1 + scale) + shift unless these are null
  ModulatedRms* zero_centred_rms_norm;
  Glu* sigmoid_gated;  // up / (1 + e^-gate)
  RmsNorm* rms_norm;   // x / rms(x) * weight
};

enum class RowType { kFloat32, kBfloat16 };

// The best kernels this machine can run.
const RowKernels& row_kernels(RowType type);

}  // namespace braid::ops
