#include "models/siglip/model.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kColours = 3;

}  // namespace

// A whole SigLIP model's config holds the picture encoder's as `vision_config`.
SiglipConfig read_siglip_config(const JsonObject& json) {
  if (json.has("vision_config"))
    return read_siglip_config(
        JsonObject(json.at("vision_config"), json.source() + ": 'vision_config'"));
  SiglipConfig c;
  c.hidden = json.integer_or("hidden_size", c.hidden, 1, 1 << 20);
  c.mlp_hidden = json.integer_or("intermediate_size", c.mlp_hidden, 1, 1 << 20);
  c.num_layers = json.integer_or("num_hidden_layers", c.num_layers, 0, 10'000);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  c.image_size = json.integer_or("image_size", c.image_size, 1, 1 << 14);
  c.patch_size = json.integer_or("patch_size", c.patch_size, 1, 1 << 14);
  json.integer_or("num_channels", kColours, kColours, kColours);
  c.eps = json.number_or("layer_norm_eps", c.eps);
  require(c.eps >= 0, json.source(), ": 'layer_norm_eps' should not be below 0, it is ", c.eps);
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

// The pooling head is skipped: nothing here uses its output.
Siglip::Siglip(const SiglipConfig& c, const Weights& w)
    : patch_size_(c.patch_size),
      patches_((w / "embeddings" / "patch_embedding")
                   .tensor("weight", {c.hidden, kColours, c.patch_size, c.patch_size})),
      patch_bias_((w / "embeddings" / "patch_embedding").tensor("bias", {c.hidden})),
      positions_LC_(
          (w / "embeddings" / "position_embedding").tensor("weight", {c.num_patches(), c.hidden})),
      layers_(w / "encoder" / "layers", c.num_layers,
              EncoderLayerShape{.hidden = c.hidden,
                                .mlp_hidden = c.mlp_hidden,
                                .num_heads = c.num_heads,
                                .eps = c.eps}),
      final_norm_(w / "post_layernorm", c.hidden, c.eps) {
  (w / "head").skip();
  w.finish();
}

Tensor Siglip::operator()(const Tensor& pixels_B3SS) const {
  const auto patches = at::conv2d(pixels_B3SS, patches_, patch_bias_, {patch_size_, patch_size_});
  auto x = patches.flatten(2).transpose(1, 2) + positions_LC_;
  layers_.for_each([&](std::int64_t, const EncoderLayer& layer) { x = layer(x, ops::attention); });
  return final_norm_(x);
}

Names siglip_names(const Checkpoint& checkpoint) {
  const std::string prefix = "vision_model.";
  const bool has_prefix = checkpoint.find(prefix + "post_layernorm.weight") != nullptr;
  return {.spellings = encoder_layer_spellings(),
          .prefix = has_prefix ? prefix : "",
          // what only whole SigLIP models use
          .ignored = {"text_model.**", "logit_scale", "logit_bias"}};
}

}  // namespace braid
