#include "nn/encoder_layer.h"

#include <ATen/ATen.h>

namespace braid {

EncoderLayer::EncoderLayer(const Weights& w, const EncoderLayerShape& s)
    : norm1_(w / "layer_norm1", s.hidden, s.eps),
      norm2_(w / "layer_norm2", s.hidden, s.eps),
      qkv_(w / "self_attn" / "qkv", {.in = s.hidden, .out = 3 * s.hidden}),
      proj_(w / "self_attn" / "out_proj", {.in = s.hidden, .out = s.hidden}),
      mlp_in_(w / "mlp" / "fc1", {.in = s.hidden, .out = s.mlp_hidden}),
      mlp_out_(w / "mlp" / "fc2", {.in = s.mlp_hidden, .out = s.hidden}),
      head_width_(s.hidden / s.num_heads),
      activation_(s.activation) {}

Tensor EncoderLayer::operator()(const Tensor& x_BLC, const Attend& attend) const {
  const auto h = x_BLC + proj_(attended(norm1_(x_BLC), attend));
  return h + mlp_out_(activated(norm2_(h)));
}

Tensor EncoderLayer::attended(const Tensor& x_BLC, const Attend& attend) const {
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  return attend_tokens(attend, split_heads(parts[0], head_width_),
                       split_heads(parts[1], head_width_), split_heads(parts[2], head_width_));
}

Tensor EncoderLayer::activated(const Tensor& x_BLC) const {
  if (activation_ == Activation::kGeluTanh) return mlp_in_.gelu(x_BLC);
  const auto h = mlp_in_(x_BLC);
  return activation_ == Activation::kGelu ? at::gelu(h) : h * at::sigmoid(1.702 * h);
}

const std::vector<KeyRule>& encoder_layer_spellings() {
  static const std::vector<KeyRule> kSpellings = {
      {"encoder.layers.*.self_attn.qkv",
       {"encoder.layers.*.self_attn.q_proj", "encoder.layers.*.self_attn.k_proj",
        "encoder.layers.*.self_attn.v_proj"}}};
  return kSpellings;
}

}  // namespace braid
