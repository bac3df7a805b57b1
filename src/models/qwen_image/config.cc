#include "models/qwen_image/config.h"

#include "base/error.h"
#include "models/flux/model.h"
#include "models/qwen_image/names.h"
#include "nn/rope.h"
#include "weights/stored_shapes.h"

namespace braid {
namespace {

constexpr std::int64_t kMaxQwenImageWidth = 1 << 20, kMaxQwenImageBlocks = 10'000;
constexpr std::int64_t kLatentsOfToken = 4;  // a patch of 2 x 2
constexpr std::int64_t kUsualLatents = 16;   // channels

// The reference would give it to the whole picture alone, which goes before its layers.
constexpr const char* kOneTime = "all layers are drawn at the step's timestep";

// The reference class counts a null as the tokens' channels; where nothing is said it has 16.
std::int64_t read_latent_channels(const JsonObject& json, std::int64_t in_channels) {
  constexpr const char* kKey = "out_channels";
  const auto otherwise = json.is_null(kKey) ? in_channels : kUsualLatents;
  return json.integer_or(kKey, otherwise, 1, kMaxQwenImageWidth / kLatentsOfToken);
}

StoredShapes shapes_in(const Checkpoint& checkpoint) {
  return {checkpoint, qwen_image_names(checkpoint), "Qwen-Image transformer"};
}

}  // namespace

// The reference class fails with 'guidance_embeds'.
QwenImageConfig read_qwen_image_config(const JsonObject& json) {
  json.check_class("QwenImageTransformer2DModel");
  require(!json.flag_or("guidance_embeds", false), json.source(),
          ": 'guidance_embeds' should be false: no Qwen-Image was distilled with guidance");
  const bool adds = json.flag_or("use_additional_t_cond", false);
  require(
      adds == json.flag_or("use_layer3d_rope", false), json.source(),
      ": 'use_additional_t_cond' and 'use_layer3d_rope' should be the same: both are Layered's");
  require(!adds || !json.flag_or("zero_cond_t", false), json.source(),
          ": 'zero_cond_t' should be false where 'use_additional_t_cond' is true: ", kOneTime);
  auto c = read_qwen_image_sizes(json);
  if (adds) c.draws = QwenImageDraws::kLayers;
  if (json.flag_or("zero_cond_t", false)) c.reference_time = ReferenceTime::kZero;
  return c;
}

QwenImageConfig read_qwen_image_sizes(const JsonObject& json) {
  json.integer_or("patch_size", 2, 2, 2);
  QwenImageConfig c;
  c.in_channels = json.integer_or("in_channels", c.in_channels, 1, kMaxQwenImageWidth);
  c.out_channels = kLatentsOfToken * read_latent_channels(json, c.in_channels);
  c.num_layers = json.integer_or("num_layers", c.num_layers, 1, kMaxQwenImageBlocks);
  c.num_heads = json.integer_or("num_attention_heads", c.num_heads, 1, 1 << 14);
  c.head_width = json.integer_or("attention_head_dim", c.head_width, 2, 1 << 14);
  c.text_width = json.integer_or("joint_attention_dim", c.text_width, 1, kMaxQwenImageWidth);
  c.axes = json.integers_or("axes_dims_rope", c.axes, 0, kMaxQwenImageWidth);
  check_rope_widths(c.axes, 3, c.head_width, "axes_dims_rope", json.source());
  return c;
}

void adopt_blocks(QwenImageConfig& c, const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  const auto layers = stored.num_blocks("double_blocks", "img_attn.norm.query_norm.weight");
  if (layers > 0) {  // else another model
    c.num_layers = layers;
    c.draws =
        stored.has("time_in.addition.weight") ? QwenImageDraws::kLayers : QwenImageDraws::kPicture;
  }
  if (checkpoint.find(qwen_image_names(checkpoint).prefix + kZeroReferenceTime))
    c.reference_time = ReferenceTime::kZero;
  require(c.draws == QwenImageDraws::kPicture || c.reference_time == ReferenceTime::kOfStep,
          checkpoint.source(), ": Qwen-Image-Layered should have neither '", kZeroReferenceTime,
          "' nor 'zero_cond_t' in its config: ", kOneTime);
}

QwenImageConfig infer_qwen_image_config(const Checkpoint& checkpoint) {
  const auto stored = shapes_in(checkpoint);
  QwenImageConfig c;
  adopt_blocks(c, checkpoint);
  c.in_channels = stored.extent("img_in.weight", 1);
  c.out_channels = stored.extent("final_layer.linear.weight", 0);
  c.text_width = stored.extent("txt_in.weight", 1);
  c.head_width = stored.extent("double_blocks.0.img_attn.norm.query_norm.weight", 0);
  const auto hidden = stored.extent("img_in.weight", 0);
  c.num_heads = stored.num_heads(hidden, c.head_width);
  check_rope_widths(c.axes, 3, c.head_width, "axes_dims_rope", checkpoint.source());
  return c;
}

FluxConfig blocks_of(const QwenImageConfig& c) {
  return {.in_channels = c.in_channels,
          .out_channels = c.out_channels,
          .num_double = c.num_layers,
          .num_single = 0,
          .num_heads = c.num_heads,
          .head_width = c.head_width,
          .text_width = c.text_width,
          .pooled_width = 0,
          .axes = c.axes};
}

DenoiserShape qwen_image_shape(const QwenImageConfig& c) {
  auto shape = flux_shape(blocks_of(c));
  shape.in_width = c.in_channels;
  shape.extra_width = 0;
  shape.blocks.pop_back();  // there are no single blocks
  if (c.reference_time == ReferenceTime::kZero)
    shape.blocks.front().more_modulations = 6 * c.hidden();
  return shape;
}

}  // namespace braid
