// The operations in plain ATen: their definition, against which kernels are tested.
#pragma once

#include "ops/ops.h"
#include "ops/sums.h"

namespace braid::ops::reference {

Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N);
Tensor gelu(const Tensor& x);
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m);
Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC);
SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m);
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
Tensor euler_step(const Tensor& x, const Tensor& v, double dt);
Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope);
Tensor attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);
Tensor causal_attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);
Tensor masked_attention(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                        const Tensor& is_seen_LS);
PartialAttention attention_with_lse(const Tensor& q_BHLD, const Tensor& k_BGLD,
                                    const Tensor& v_BGLD);

}  // namespace braid::ops::reference
