#include "models/siglip/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kColours = 3;

const std::vector<Spelling> kSiglipSpellings = {
    {"encoder.layers.*.self_attn.qkv",
     {"encoder.layers.*.self_attn.q_proj", "encoder.layers.*.self_attn.k_proj",
      "encoder.layers.*.self_attn.v_proj"}}};

}  // namespace

SiglipConfig read_siglip_config(const JsonObject& json) {
  SiglipConfig c;
  c.hidden = json.integer_or("hidden_size", c.hidden, 1, 1 << 20);
  c.mlp_hidden = json.integer_or("intermediate_size", c.mlp_hidden, 1, 1 << 20);
  c.num_layers = json.integer_or("num_hidden_layers", c.num_layers, 0, 10'000);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  c.image_size = json.integer_or("image_size", c.image_size, 1, 1 << 14);
  c.patch_size = json.integer_or("patch_size", c.patch_size, 1, 1 << 14);
  json.integer_or("num_channels", kColours, kColours, kColours);
  c.eps = json.number_or("layer_norm_eps", c.eps);
  const std::string gelu = "gelu_pytorch_tanh";
  const auto activation = json.string_or("hidden_act", gelu);
  require(activation == gelu, json.source(), ": 'hidden_act' should be ", gelu, ", it is ",
          activation);
  require(c.hidden % c.num_heads == 0, json.source(), ": 'num_attention_heads', ", c.num_heads,
          ", should divide 'hidden_size', ", c.hidden);
  require(c.patch_size <= c.image_size, json.source(), ": 'patch_size', ", c.patch_size,
          ", should be at most 'image_size', ", c.image_size);
  return c;
}

SiglipLayer::SiglipLayer(const Weights& w, const SiglipConfig& c)
    : norm1_(w / "layer_norm1", c.hidden, c.eps),
      norm2_(w / "layer_norm2", c.hidden, c.eps),
      qkv_(w / "self_attn" / "qkv", {.in = c.hidden, .out = 3 * c.hidden}),
      proj_(w / "self_attn" / "out_proj", {.in = c.hidden, .out = c.hidden}),
      mlp_in_(w / "mlp" / "fc1", {.in = c.hidden, .out = c.mlp_hidden}),
      mlp_out_(w / "mlp" / "fc2", {.in = c.mlp_hidden, .out = c.hidden}),
      head_width_(c.hidden / c.num_heads) {}

Tensor SiglipLayer::attend(const Tensor& x_BLC) const {
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  return attend_tokens(ops::attention, split_heads(parts[0], head_width_),
                       split_heads(parts[1], head_width_), split_heads(parts[2], head_width_));
}

Tensor SiglipLayer::operator()(const Tensor& x_BLC) const {
  const auto h = x_BLC + proj_(attend(norm1_(x_BLC)));
  return h + mlp_out_(mlp_in_.gelu(norm2_(h)));
}

// The pooling head looks at what is made here; nobody here looks at it.
Siglip::Siglip(const SiglipConfig& c, const Weights& w)
    : patch_size_(c.patch_size),
      patches_((w / "embeddings" / "patch_embedding")
                   .tensor("weight", {c.hidden, kColours, c.patch_size, c.patch_size})),
      patch_bias_((w / "embeddings" / "patch_embedding").tensor("bias", {c.hidden})),
      positions_LC_(
          (w / "embeddings" / "position_embedding").tensor("weight", {c.num_patches(), c.hidden})),
      layers_(w / "encoder" / "layers", c.num_layers, c),
      final_norm_(w / "post_layernorm", c.hidden, c.eps) {
  (w / "head").skip();
  w.finish();
}

Tensor Siglip::operator()(const Tensor& pixels_B3SS) const {
  const auto patches = at::conv2d(pixels_B3SS, patches_, patch_bias_, {patch_size_, patch_size_});
  auto x = patches.flatten(2).transpose(1, 2) + positions_LC_;
  layers_.for_each([&](std::int64_t, const SiglipLayer& layer) { x = layer(x); });
  return final_norm_(x);
}

Names siglip_names(const Checkpoint& checkpoint) {
  const std::string prefix = "vision_model.";
  const bool has_prefix = checkpoint.find(prefix + "post_layernorm.weight") != nullptr;
  return {.spellings = kSiglipSpellings, .prefix = has_prefix ? prefix : ""};
}

}  // namespace braid
