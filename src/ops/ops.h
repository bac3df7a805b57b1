// The operations models are made of, each with its contract. `reference.cc` spells them with ATen:
// that is their definition, it runs on every device, and the kernels that ops.cc chooses where they
// apply (cpu.cc) are tested against it.
//
// Shape letters: B batch, L tokens, C width, H heads, G heads of keys and values, D head width,
// N outputs.
// Inputs may be views with any strides. The definitions compute in the inputs' dtype unless said
// otherwise, rounded after every step as the reference pipeline rounds; kernels may round less.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

#include "weights/matrix.h"
#include "weights/scratch.h"

namespace braid {

using at::Tensor;

// Cosines and sines of the rotary angles, float32 [L D]; each value stands twice, for a pair.
struct Rope {
  Tensor cos, sin;
};

// The same of rotary embeddings whose pairs are (x_i x_{i+D/2}), [L D/2] in the activations' dtype.
struct HalfSplitRope {
  Tensor cos, sin;
};

// One adaLN modulation, [B 1 C] each.
struct Modulation {
  Tensor shift, scale, gate;
};

namespace ops {

// x_..C weight_NC bias_N -> [.. N], the weight in any form. Codes, of eight bits or as a file has
// them, are multiplied by their scales and rounded to x's dtype, in `scratch`; the dynamic form
// rounds x to 8 bits too, a scale a token, and sums in int32.
Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Scratch& scratch);
namespace reference {
Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N);
}

// The tanh approximation (Hendrycks and Gimpel, 2016).
Tensor gelu(const Tensor& x);

// gelu(linear(...))
Tensor linear_gelu(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
                   Scratch& scratch);

// LayerNorm without weights (eps 1e-6), then * (1 + scale) + shift.   x_BLC -> [B L C]
Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m);

// residual + gate * y; float16 is clipped to its largest finite value, 65504.
Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC);

// x / sqrt(mean(x^2) + eps) * weight over the last dim; the mean in float32, the result in the
// weight's dtype (Zhang and Sennrich, 2019).
Tensor rms_norm(const Tensor& x, const Tensor& weight, double eps);

// The same, rounded to x's dtype before the weight multiplies it, and then again: LlamaRMSNorm
// (transformers) and diffusers' RMSNorm.   x_..C weight_C, of one dtype -> [.. C]
Tensor llama_rms_norm(const Tensor& x, const Tensor& weight, double eps);

// Rotates the pairs (x0 x1), (x2 x3), ... of every head by the token's angles, in float32
// (Su et al., RoFormer, 2021).   x_BLHD -> [B L H D]
Tensor rotate(const Tensor& x_BLHD, const Rope& rope);

// Rotates the pairs (x0 x_{D/2}), (x1 x_{D/2+1}), ... in x's dtype: transformers' rotate_half.
// x_BLHD -> [B L H D]
Tensor rotate_halves(const Tensor& x_BLHD, const HalfSplitRope& rope);

// silu(gate) * up (Shazeer, GLU Variants Improve Transformer, 2020).   [B L C]
Tensor swiglu(const Tensor& gate_BLC, const Tensor& up_BLC);

// [x | gelu(y)]   x_BLC y_BLC' -> [B L C+C']
Tensor joined_gelu(const Tensor& x_BLC, const Tensor& y_BLC);

// [x | swiglu(gate, up)]   x_BLC gate_BLC' up_BLC' -> [B L C+C']
Tensor joined_swiglu(const Tensor& x_BLC, const Tensor& gate_BLC, const Tensor& up_BLC);

// One step of Euler's method: x + dt * v in float32, of which the product was rounded to v's dtype;
// then in v's dtype, which is x's too. As in diffusers' pipelines, dt is rounded too on a CPU and
// is not on a GPU.
Tensor euler_step(const Tensor& x, const Tensor& v, double dt);

// Heads of some tokens and the weight of their RMS norm.
struct NormedHeads {
  Tensor x_BLHD, weight_D;
};
// The parts, each RMS-normed by its weight, joined along the tokens and rotated.
Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope);

// softmax(q k^T / sqrt(D)) v, softmax in float32.   q [B H L D], k v [B G L D] -> [B H L D]
// G divides H: head h of the queries sees head h / (H / G) of keys and values, of which no copies
// are made (grouped-query attention, Ainslie et al., 2023).
Tensor attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// The same for a text's own tokens: query i sees keys 0 .. i.
Tensor causal_attention(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// Attention over some of the keys: the result, and the logarithm of the sum of exponentials of the
// scaled scores, by which results over other keys are merged.
struct PartialAttention {
  Tensor out_BHLD;  // zero where there are no keys
  Tensor lse_BHL;   // float32, always three dims; -inf where there are no keys
};
PartialAttention attention_with_lse(const Tensor& q_BHLD, const Tensor& k_BGLD,
                                    const Tensor& v_BGLD);

}  // namespace ops
}  // namespace braid
