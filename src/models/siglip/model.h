// The SigLIP vision encoder (Zhai et al., 2023; transformers' SiglipVisionModel) without its head,
// written for one device.
//
// Shape letters: B batch, S side of the picture, L patches, C width.
#pragma once

#include "base/json.h"
#include "nn/block_list.h"
#include "nn/encoder_layer.h"
#include "nn/norm.h"

namespace braid {

// Defaults are the reference class's.
struct SiglipConfig {
  std::int64_t hidden = 768, mlp_hidden = 3072, num_layers = 12, num_heads = 12;
  std::int64_t image_size = 224, patch_size = 16;  // pixels per side
  double eps = 1e-6;

  std::int64_t num_patches() const { return (image_size / patch_size) * (image_size / patch_size); }
};

// Reads image_encoder/config.json. Throws InputError naming the field.
SiglipConfig read_siglip_config(const JsonObject& json);

class Siglip {
 public:
  Siglip(const SiglipConfig& config, const Weights& w);
  // pixels_B3SS of image_size, -1 .. 1 -> [B L C], after the last norm.
  Tensor operator()(const Tensor& pixels_B3SS) const;

 private:
  std::int64_t patch_size_;
  Tensor patches_, patch_bias_, positions_LC_;
  BlockList<EncoderLayer> layers_;
  LayerNorm final_norm_;
};

// The names of published checkpoints, prefixed `vision_model.`, and of newer ones.
Names siglip_names(const Checkpoint& checkpoint);

}  // namespace braid
