// CPU kernels that make one pass over memory where ATen makes several. Each takes what supports()
// accepts, and equals ops::reference up to the rounding of its dtype.
#pragma once

#include "ops/ops.h"
#include "ops/sums.h"

namespace braid::ops::cpu {

// float32 or bfloat16 in host memory with dense rows.
bool supports(const Tensor& x);

Tensor gelu(const Tensor& x);
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m);
Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC);
// Bit-identical to ops::reference and to the GPU's kernel.
void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out);
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor llama_rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor zero_centred_rms_norm(const Tensor& x, const Tensor& weight, double eps);
Tensor modulated_rms_norm(const Tensor& x_BLC, const Tensor& weight, const Modulation& m,
                          double eps);
Tensor sigmoid_gated(const Tensor& x_BLC, const Tensor& gate_BLC);
Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope);
Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC);
Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC);
Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC);
Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope);

}  // namespace braid::ops::cpu
