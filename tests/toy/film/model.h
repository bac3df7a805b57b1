// A transformer that no one publishes, for clips: its blocks attend among the tokens of all frames,
// and see the text by cross-attention alone.
//
// Shape letters: B batch, T text tokens, I image tokens, C hidden width, D head width.
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

struct FilmConfig {
  std::int64_t channels = 16;  // of a latent
  std::int64_t num_blocks = 4, num_heads = 6, head_width = 8;
  std::int64_t text_width = 128;
  std::vector<std::int64_t> axes = {2, 2, 4};  // frame, row, column

  std::int64_t hidden() const { return num_heads * head_width; }
  RopeAxes rope_axes() const { return {.widths = axes}; }
  std::int64_t mlp_hidden() const { return 2 * hidden(); }
};

// Throws InputError naming the field.
FilmConfig read_film_config(const JsonObject& json);

class FilmBlock {
 public:
  FilmBlock(const Weights& w, const FilmConfig& config);
  // `text_BTC` is whole on every rank.
  Tensor operator()(const Tensor& x_BIC, const Tensor& text_BTC, const Tensor& vec_BC,
                    const Rope& rope, const Attend& attend) const;

 private:
  Tensor among_image(const Tensor& normed_BIC, const Rope& rope, const Attend& attend) const;
  Tensor to_text(const Tensor& x_BIC, const Tensor& text_BTC) const;

  Linear mod_, qkv_, proj_, text_q_, text_kv_, text_proj_, up_, down_;
  RmsNorm q_norm_, k_norm_;
  FilmConfig config_;
};

class Film {
 public:
  Film(const FilmConfig& config, const Weights& w, Attend attend = attention_here,
       std::optional<BlockRange> run = {});

  // Parts pass on [B I+1 C], tokens and the vector of the timestep. The text is refined.
  Tensor advance(const DenoiserInput& in, const Tensor& state) const;
  // The embedded text [B T C]; parts behind the first pass it on.
  Tensor refine(const DenoiserInput& in, const Tensor& text_BTC) const;

 private:
  struct Inputs {
    Inputs(const Weights& w, const FilmConfig& config);
    Linear image, text, time;
  };

  FilmConfig config_;
  BlockRun run_;
  Attend attend_;
  std::optional<Inputs> inputs_;  // of the first part
  BlockList<FilmBlock> blocks_;
  std::optional<Linear> output_;  // of the last part
};

ShardingTable film_sharding(const FilmConfig& config, SharedModulation modulation);
DenoiserShape film_shape(const FilmConfig& config);

}  // namespace braid::toy
