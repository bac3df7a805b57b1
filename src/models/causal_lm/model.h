// Causal language models as prompt encoders, written for one device: Qwen3 (Yang et al., 2025;
// transformers' Qwen3Model), that of Qwen2.5-VL (Bai et al., 2025; Qwen2_5_VLTextModel) without
// pictures, and Mistral (Jiang et al., 2023; MistralModel). The prompt embedding is the output of
// one layer, or of several side by side; the last layer's is normed. Later layers and the
// vocabulary head are neither loaded nor run, nor is the final norm unless it is asked for.
//
// Shape letters: B batch, L tokens, T rows of all prompts, C width, H heads, G heads of keys and
// values, D head width.
#pragma once

#include <optional>
#include <span>
#include <vector>

#include "models/causal_lm/config.h"
#include "models/causal_lm/packed_prompts.h"
#include "nn/attention.h"
#include "nn/block_list.h"
#include "nn/linear.h"
#include "nn/norm.h"
#include "nn/token_table.h"

namespace braid {

class CausalLmLayer {
 public:
  CausalLmLayer(const Weights& w, const CausalLmConfig& config);
  Tensor operator()(const Tensor& x_1TC, const PackedPrompts& prompts,
                    const HalfSplitRope& rope) const;

 private:
  Tensor attend(const Tensor& x_1TC, const PackedPrompts& prompts, const HalfSplitRope& rope) const;
  Tensor feed_forward(const Tensor& x_1TC) const;

  LlamaRmsNorm attention_norm_, mlp_norm_;
  Linear q_, k_, v_, proj_, gate_, up_, down_;
  std::optional<LlamaRmsNorm> q_norm_, k_norm_;
  std::int64_t head_width_;
};

// Indexed like transformers' hidden_states: k > 0 is the output of layer k - 1, 0 the embedded
// tokens, -2 the last but one, -1 the last, which is normed.
using HiddenStates = std::vector<std::int64_t>;

class CausalLm {
 public:
  // Throws InputError if the model has too few layers for `states`.
  CausalLm(const CausalLmConfig& config, HiddenStates states, const Weights& w);

  // ids_BL int64, and for each prompt the position of its text -> [B L n*C], the n states side by
  // side. Positions count padding. Throws InputError for an id outside the vocabulary and for more
  // tokens than the model's window.
  Tensor operator()(const Tensor& ids_BL, std::span<const TextRun> texts,
                    Pads pads = Pads::kEncoded) const;

  const CausalLmConfig& config() const { return config_; }
  std::int64_t width() const { return config_.hidden * std::int64_t(states_.size()); }  // n*C

 private:
  CausalLmConfig config_;
  HiddenStates states_;  // counted from 0
  at::TensorOptions options_;
  TokenTable embedding_;
  BlockList<CausalLmLayer> layers_;
  std::optional<LlamaRmsNorm> norm_;  // if the last state is asked for
};

}  // namespace braid
