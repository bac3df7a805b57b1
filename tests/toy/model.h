// A transformer that no one publishes, for the tests of the family door: one kind of block, grouped
// heads, no pooled prompt, positions along two axes. Written for one device, as all models are.
//
// Shape letters: B batch, T text tokens, I image tokens, L = T + I, C hidden width, D head width.
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

struct ToyConfig {
  std::int64_t channels = 16;  // of a latent
  std::int64_t num_blocks = 4, num_heads = 6, num_kv_heads = 2, head_width = 8;
  std::int64_t text_width = 128;
  std::vector<std::int64_t> axes = {4, 4};

  std::int64_t hidden() const { return num_heads * head_width; }
  RopeAxes rope_axes() const { return {.widths = axes}; }
  std::int64_t kv_width() const { return num_kv_heads * head_width; }
  std::int64_t mlp_hidden() const { return 2 * hidden(); }
};

// Throws InputError naming the field.
ToyConfig read_toy_config(const JsonObject& json);

class ToyBlock {
 public:
  ToyBlock(const Weights& w, const ToyConfig& config);
  Tensor operator()(const Tensor& x_BLC, const Tensor& vec_BC, const Rope& rope,
                    const Attend& attend) const;

 private:
  Linear mod_, qkv_, proj_, up_, down_;
  RmsNorm q_norm_, k_norm_;
  ToyConfig config_;
};

class Toy {
 public:
  Toy(const ToyConfig& config, const Weights& w, Attend attend = ops::attention,
      std::optional<BlockRange> run = {});

  // Does what Flux::advance() does: between parts travels [B L+1 C], tokens and the vector of the
  // timestep.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;

 private:
  struct Inputs {
    Inputs(const Weights& w, const ToyConfig& config);
    Linear image, text, time;
  };

  ToyConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Inputs> inputs_;  // of the first part
  BlockList<ToyBlock> blocks_;
  std::optional<Linear> output_;  // of the last part
};

Names toy_names();
ShardingTable toy_sharding(const ToyConfig& config, SharedModulation modulation);
DenoiserShape toy_shape(const ToyConfig& config);

}  // namespace braid::toy
