// A transformer that no one publishes, causal by blocks: text and references are a prefix that sees
// nothing of the drawn picture and no timestep.
//
// Shape letters: B batch, P tokens of the prefix, I image tokens, L = P + I, C hidden width.
#pragma once

#include "base/json.h"
#include "nn/attention.h"
#include "nn/block_list.h"
#include "nn/denoiser_shape.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/predict.h"
#include "nn/rope.h"

namespace braid::toy {

struct StickerConfig {
  std::int64_t channels = 16;  // of a latent
  std::int64_t num_blocks = 3, num_heads = 4, num_kv_heads = 2, head_width = 8;
  std::int64_t text_width = 128;
  std::vector<std::int64_t> axes = {4, 2, 2};  // place in the text, row, column

  std::int64_t hidden() const { return num_heads * head_width; }
  RopeAxes rope_axes() const { return {.widths = axes}; }
  std::int64_t kv_width() const { return num_kv_heads * head_width; }
  std::int64_t mlp_hidden() const { return 2 * hidden(); }
};

// Throws InputError naming the field.
StickerConfig read_sticker_config(const JsonObject& json);

// Vectors [B C] of the timestep and, for the prefix, of timestep 0.
struct StickerTimes {
  Tensor image_BC, prefix_BC;
};

class StickerBlock {
 public:
  StickerBlock(const Weights& w, const StickerConfig& config);
  // The first tokens of `x_BLC` are those of the prefix, with these spans.
  Tensor operator()(const Tensor& x_BLC, const StickerTimes& times, const Rope& rope,
                    const Tensor& span_P2, const Attend& attend) const;

 private:
  Linear mod_, qkv_, proj_, up_, down_;
  RmsNorm q_norm_, k_norm_;
  StickerConfig config_;
};

class Sticker {
 public:
  Sticker(const StickerConfig& config, const Weights& w, Attend attend = attention_here,
          std::optional<BlockRange> run = {});

  // Takes the prefix and the noise together, or either alone. Between parts travels [B L+2 C].
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

 private:
  struct Inputs {
    Inputs(const Weights& w, const StickerConfig& config);
    Linear image, text, time;

    Tensor tokens(const DenoiserInput& in) const;  // [B L C]
    StickerTimes times(const DenoiserInput& in) const;
  };

  StickerConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Inputs> inputs_;  // of the first part
  BlockList<StickerBlock> blocks_;
  std::optional<Linear> output_;  // of the last part
};

ShardingTable sticker_sharding(const StickerConfig& config);
DenoiserShape sticker_shape(const StickerConfig& config);

}  // namespace braid::toy
