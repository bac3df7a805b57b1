// The operations models are built from, with their contracts. `reference.cc` defines each with ATen
// and runs on every device. The kernels that ops.cc selects where they apply are tested against it.
//
// Shape letters: B batch, L tokens, C width, H heads, G heads of keys and values, D head width,
// N outputs.
// Inputs may be views with any strides. The definitions compute in the inputs' dtype unless said
// otherwise, rounded after every step as the reference pipeline rounds; kernels may round less.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>
#include <utility>

#include "ops/layer_input.h"
#include "weights/matrix.h"
#include "weights/scratch.h"

namespace braid {

using at::Tensor;

// Cosines and sines of the rotary angles, float32 [L D]; each value is repeated for both of a pair.
struct Rope {
  Tensor cos, sin;
};

// The same for rotary embeddings that pair (x_i x_{i+D/2}): [L D/2] in the activations' dtype.
struct HalfSplitRope {
  Tensor cos, sin;
};

// One adaLN modulation, [B 1 C] each.
struct Modulation {
  Tensor shift, scale, gate;
};

namespace ops {

// x_..C weight_NC bias_N -> [.. N], the weight in any form. Codes, 8-bit or as a file stores them,
// are multiplied by their scales and rounded to x's dtype in `scratch`. The dynamic form also
// rounds x to 8 bits, one scale per token, and sums in int32; codes of rotated numbers multiply x
// rotated alike. `room`, if defined, is dense memory for the result: GPUs' products put it there.
Tensor linear(const LayerInput& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Scratch& scratch, const Tensor& room = {});

// The tanh approximation (Hendrycks and Gimpel, 2016).
Tensor gelu(const Tensor& x);

// gelu(linear(...))
Tensor linear_gelu(const LayerInput& x, const Matrix& weight_NC,
                   const std::optional<Tensor>& bias_N, Scratch& scratch);

// Whether a GPU's product of tokens like `x` applies GELU at its end.
bool ends_in_gelu(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N);
// The first `plain` columns of linear(), and gelu() of the others; where ends_in_gelu().
std::pair<Tensor, Tensor> linear_then_gelu(const Tensor& x, const Matrix& weight_NC,
                                           const Tensor& bias_N, std::int64_t plain);

// Operations with a form make what the next layer reads: codes only if one kernel does it all.
LayerInput gelu(const Tensor& x, InputForm form);

// LayerNorm without weights (eps 1e-6), then * (1 + scale) + shift.   x_BLC -> [B L C]
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m);

LayerInput modulated_norm(const Tensor& x_BLC, const Modulation& m, InputForm form);

// residual + gate * y; float16 is clipped to its largest finite value, 65504.
Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC);

// gated_residual(), and modulated_norm() of that sum.
struct SumAndInput {
  Tensor sum_BLC;
  LayerInput normed;
};
SumAndInput gated_residual_norm(const Tensor& residual_BLC, const Tensor& gate_B1C,
                                const Tensor& y_BLC, const Modulation& m, InputForm form);

// x / sqrt(mean(x^2) + eps) * weight over the last dim; the mean in float32, the result in the
// weight's dtype (Zhang and Sennrich, 2019).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// The same, but rounded to x's dtype before and after multiplying by the weight: LlamaRMSNorm
// (transformers) and diffusers' RMSNorm.   x_..C weight_C, of one dtype -> [.. C]
Tensor llama_rms_norm(const Tensor& x, const Tensor& weight, double eps);

// x / sqrt(mean(x^2) + eps) * (1 + weight) over the last dim, in float32, then rounded to x's
// dtype: norms whose weights are stored minus one.   x_..C, weight_C float32 -> [.. C]
Tensor zero_centred_rms_norm(const Tensor& x, const Tensor& weight, double eps);

// The same, then * (1 + scale) + shift.   x_BLC -> [B L C]
Tensor modulated_rms_norm(const Tensor& x_BLC, const Tensor& weight, const Modulation& m,
                          double eps);

// Rotates the pairs (x0 x1), (x2 x3), ... of every head by the token's angles, in float32
// (Su et al., RoFormer, 2021).   x_BLHD -> [B L H D]
Tensor rotate(const Tensor& x_BLHD, const Rope& rope);

// Rotates the pairs (x0 x_{D/2}), (x1 x_{D/2+1}), ...: transformers' rotate_half. In x's dtype, or
// in the angles' if that is wider, then rounded to x's.   x_BLHD -> [B L H D]
Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope);

// silu(gate) * up (Shazeer, GLU Variants Improve Transformer, 2020).   [B L C]
Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC);

// x * sigmoid(gate)   [B L C]
Tensor sigmoid_gated(const Tensor& x_BLC, const Tensor& gate_BLC);

// [x | gelu(y)]   x_BLC y_BLC' -> [B L C+C']
Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC);
LayerInput joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC, InputForm form);

// [x | swiglu(gate, up)]   x_BLC gate_BLC' up_BLC' -> [B L C+C']
Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC);

// One Euler step, x + dt * v. dt * v is rounded to v's dtype, the sum is in float32 and is then
// rounded to v's dtype, which is also x's. Like diffusers' pipelines, rounds dt on a CPU but not on
// a GPU.
Tensor euler_step(const Tensor& x, const Tensor& v, double dt);

// The heads of some tokens and the weight of their RMS norm, of the heads' dtype or float32.
struct NormedHeads {
  Tensor x_BLHD, weight_D;
};
// The parts, RMS-normed by their weights, concatenated along the tokens and rotated.
Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope);

// Queries and keys of the same tokens, normed and rotated as NormedHeads are.
struct QueriesKeys {
  NormedHeads q, k;
};
struct RotatedHeads {
  Tensor q_BLHD, k_BLGD;
};
RotatedHeads normed_rotated(std::span<const QueriesKeys> parts, double eps, const Rope& rope);

// softmax(q k^T / sqrt(D)) v, softmax in float32.   q [B H L D], k v [B G L D] -> [B H L D]
// G divides H: query head h sees key and value head h / (H / G), which is not copied (grouped-query
// attention, Ainslie et al., 2023).
Tensor attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// The same with a causal mask: query i sees keys 0 .. i.
Tensor causal_attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// The same where query i sees the keys that row i of `is_seen` marks, at least one: bool [L S].
Tensor masked_attention(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                        const Tensor& is_seen_LS);

// Attention over some of the keys: the result and the log-sum-exp of the scaled scores, used to
// merge results over disjoint keys.
struct PartialAttention {
  Tensor out_BHLD;  // zero if there are no keys
  Tensor lse_BHL;   // float32, always three dims; -inf if there are no keys
};
PartialAttention attention_with_lse(const Tensor& q_BHLD, const Tensor& k_BGLD,
                                    const Tensor& v_BGLD);

}  // namespace ops
}  // namespace braid
