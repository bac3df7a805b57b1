// The CLIP text encoder (Radford et al., 2021; transformers' CLIPTextModel), written for one
// device.
//
// Shape letters: B batch, L tokens, C width, H heads, D head width.
#pragma once

#include "base/json.h"
#include "nn/block_list.h"
#include "nn/encoder_layer.h"
#include "nn/norm.h"
#include "nn/token_table.h"
#include "weights/adapters/adapter_names.h"

namespace braid {

// Defaults are those of CLIP-L/14.
struct ClipConfig {
  std::int64_t vocab_size = 49408, max_positions = 77;
  std::int64_t hidden = 768, mlp_hidden = 3072, num_layers = 12, num_heads = 12;
  double eps = 1e-5;
  std::int64_t eos_token = 49407;
  Activation activation = Activation::kQuickGelu;
};

// Reads text_encoder/config.json. Throws InputError naming the field.
ClipConfig read_clip_config(const JsonObject& json);

class Clip {
 public:
  Clip(const ClipConfig& config, const Weights& w);

  struct Output {
    Tensor hidden_BLC;  // after the last norm
    Tensor pooled_BC;   // of the end-of-text token
  };
  // ids_BL int64, L <= max_positions. Throws InputError for an id outside the vocabulary.
  Output operator()(const Tensor& ids_BL) const;

  const ClipConfig& config() const { return config_; }

 private:
  ClipConfig config_;
  TokenTable token_embedding_;
  Tensor position_embedding_;
  BlockList<EncoderLayer> layers_;
  LayerNorm final_norm_;
};

// The names of published checkpoints, prefixed `text_model.`, and of newer ones.
Names clip_names(const Checkpoint& checkpoint);
AdapterNames clip_adapter_names();

// How tensor parallelism divides the encoder.
ShardingTable clip_sharding(const ClipConfig& config);

}  // namespace braid
