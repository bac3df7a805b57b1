// The T5 v1.1 encoder (Raffel et al., 2020; Shazeer, 2020; transformers' T5EncoderModel), written
// for one device. No attention mask: FLUX attends to padding.
//
// Shape letters: B batch, L tokens, C width, H heads, D head width.
#pragma once

#include <vector>

#include "base/json.h"
#include "nn/attention.h"
#include "nn/block_list.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/token_table.h"
#include "weights/adapters/adapter_names.h"

namespace braid {

// Defaults are those of T5-v1.1-XXL.
struct T5Config {
  std::int64_t vocab_size = 32128;
  std::int64_t hidden = 4096, mlp_hidden = 10240, num_layers = 24;
  std::int64_t num_heads = 64, head_width = 64;
  std::int64_t num_buckets = 32, max_distance = 128;  // of relative positions
  double eps = 1e-6;
};

// Reads text_encoder_2/config.json. Throws InputError naming the field.
T5Config read_t5_config(const JsonObject& json);

class T5Block {
 public:
  T5Block(const Weights& w, const T5Config& config);
  // bias_1HLL is added to the attention scores
  Tensor operator()(const Tensor& x_BLC, const Tensor& bias_1HLL) const;

 private:
  Tensor attend(const Tensor& x_BLC, const Tensor& bias_1HLL) const;
  Tensor feed_forward(const Tensor& x_BLC) const;

  RmsNorm attention_norm_, mlp_norm_;
  Linear qkv_, proj_, gate_, up_, down_;
  std::int64_t head_width_;
};

class T5 {
 public:
  T5(const T5Config& config, const Weights& w);

  // ids_BL int64 -> [B L C]. Throws InputError for an id outside the vocabulary.
  Tensor operator()(const Tensor& ids_BL) const;

  const T5Config& config() const { return config_; }

 private:
  Tensor position_bias(std::int64_t length) const;

  T5Config config_;
  TokenTable embedding_;
  Tensor relative_bias_;
  BlockList<T5Block> blocks_;
  RmsNorm final_norm_;
};

// Buckets of (key - query) positions [L L], int64; far distances share buckets.
Tensor relative_position_buckets(std::int64_t length, const T5Config& config, at::Device device);

Names t5_names();
AdapterNames t5_adapter_names();

// How tensor parallelism divides the encoder.
ShardingTable t5_sharding(const T5Config& config);

}  // namespace braid
