// GPU kernels that make one pass over memory where ATen makes several. Each takes what supports()
// accepts, and equals ops::reference up to the rounding of its dtype. They are queued on the
// current stream without waiting. Builds without a GPU backend use no_gpu.cc, which accepts
// nothing.
#pragma once

#include "ops/cpu/int8.h"
#include "ops/ops.h"
#include "ops/sums.h"

namespace braid::ops::gpu {

// float32, bfloat16 or float16 in GPU memory with dense rows.
bool supports(const Tensor& x);
// Rows of up to 16384 numbers, which norms and quantize_rows() keep in registers.
bool keeps_rows(std::int64_t width);
bool keeps_rows(const Tensor& x);
// Heads of an even width up to 512, with a weight of their dtype.
bool supports(const NormedHeads& part);

// The `_codes` are float8, bit-identical to quantize_rows() of what is made without.
Tensor gelu(const Tensor& x);
LayerInput gelu_codes(const Tensor& x);
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m);
LayerInput modulated_norm_codes(const Tensor& x_BLC, const Modulation& m);
Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC);
// Rows as keeps_rows() says. Equal to the two one after the other, bit for bit where all operands
// are aligned alike.
SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m);
SumAndInput gated_residual_norm_codes(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                      const Tensor& y_BLC, const Modulation& m);
// Whether one kernel adds so many parts. Then it equals ops::reference bit for bit.
bool adds(std::size_t num_parts);
void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out);
Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC);
LayerInput joined_gelu_codes(const Tensor& x_BLC, const Tensor& y_BLC);
Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope);
// The same of queries and of keys, whose heads are as wide, by one kernel for up to 4 parts.
RotatedHeads normed_rotated(std::span<const NormedHeads> q, std::span<const NormedHeads> k,
                            double eps, const Rope& rope);
Tensor euler_step(const Tensor& x, const Tensor& v, double dt);

// Bit-identical to braid::quantize_rows() on a CPU, for kInt8 or kFloat8. `rotated_together`
// neighbours are first rotated in float32, as braid::rotated() does; rotates_rows() must hold.
Matrix quantize_rows(const Tensor& x_MC, Quantize form, std::int64_t rotated_together = 0);
// Whether a warp has that many neighbours in registers: up to 256 in 16 bits, 64 in float32.
bool rotates_rows(const Tensor& x_MC, std::int64_t together);
// Whether the library has products of 8-bit integers on x's device; true if that is no GPU.
bool supports_int8_products(const Tensor& x);
// code * scale, rounded to the dtype of `out_NC`.
void widen(const Matrix& matrix, const Tensor& out_NC);
// round(sum * token scale) * row scale + bias, each rounding to the dtype of `out_MN`.
void scale(const ScaledSums& y, const Tensor& out_MN);

// Whether a kernel of the library multiplies and applies GELU: on NVIDIA, in 16 bits, with a bias
// and a weight of numbers without adapters.
bool multiplies_with_gelu(const Tensor& x, const Matrix& weight_NC,
                          const std::optional<Tensor>& bias_N);
// gelu(x weight^T + bias), rounded once.
Tensor linear_gelu(const Tensor& x, const Matrix& weight_NC, const Tensor& bias_N);

// Whether the device multiplies float8: on NVIDIA from compute capability 8.9 on, bfloat16 by a
// kFloat8 weight, with widths that are multiples of 16. `x` may have another width than the weight.
bool multiplies_float8(const Tensor& x, const Matrix& weight_NC);
// Quantizes tokens that are numbers; sums are those of the tensor cores. Into `room` as
// ops::linear().   x [.. C] -> [M N]
Tensor linear_float8(const LayerInput& x, const Matrix& weight_NC,
                     const std::optional<Tensor>& bias_N, const Tensor& room = {});

// Whether x is float32, bfloat16 or float16 in GPU memory and the weight as its file
// has it, in blocks or float8.
bool supports_decoding(const Tensor& x, const Matrix& weight_NC);
// Bit-identical to braid::decoded(), to a dense `out_NC` of one of these dtypes.
void decode(const Matrix& matrix, const Tensor& out_NC);
// Products by panels of rows (ops/panels.h), each decoded before it multiplies.
Tensor linear_of_stored(const Tensor& x_MC, const Matrix& weight_NC,
                        const std::optional<Tensor>& bias_N, Scratch& scratch);

}  // namespace braid::ops::gpu
