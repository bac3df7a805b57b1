#include "models/causal_lm/model.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "nn/rope.h"

namespace braid {
namespace {

HiddenStates counted_from_0(HiddenStates states, const CausalLmConfig& c) {
  require(!states.empty(), "no layer of the text encoder was asked for");
  for (auto& state : states) {
    const auto asked = state;
    if (state < 0) state += c.num_layers + 1;
    require(state >= 0 && state <= c.num_layers, "the text encoder has ", c.num_layers,
            " layers: there is no hidden state ", asked);
  }
  return states;
}

std::int64_t largest(const HiddenStates& states) {
  return *std::max_element(states.begin(), states.end());
}

std::optional<LlamaRmsNorm> head_norm(const Weights& w, const CausalLmConfig& c) {
  if (c.head_norm == HeadNorm::kNo) return {};
  return LlamaRmsNorm(w, c.head_width, c.eps);
}

LinearShape no_bias(std::int64_t in, std::int64_t out) {
  return {.in = in, .out = out, .bias = Bias::kNo};
}

// The layers of queries, keys and values.
LinearShape in_attention(const CausalLmConfig& c, std::int64_t out) {
  const bool has_bias = c.attention_bias != AttentionBias::kNo;
  return {.in = c.hidden, .out = out, .bias = has_bias ? Bias::kYes : Bias::kNo};
}

LinearShape behind_attention(const CausalLmConfig& c) {
  const bool has_bias = c.attention_bias == AttentionBias::kAll;
  return {
      .in = c.num_heads * c.head_width, .out = c.hidden, .bias = has_bias ? Bias::kYes : Bias::kNo};
}

}  // namespace

CausalLmLayer::CausalLmLayer(const Weights& w, const CausalLmConfig& c)
    : attention_norm_(w / "input_layernorm", c.hidden, c.eps),
      mlp_norm_(w / "post_attention_layernorm", c.hidden, c.eps),
      q_(w / "self_attn" / "q_proj", in_attention(c, c.num_heads * c.head_width)),
      k_(w / "self_attn" / "k_proj", in_attention(c, c.num_kv_heads * c.head_width)),
      v_(w / "self_attn" / "v_proj", in_attention(c, c.num_kv_heads * c.head_width)),
      proj_(w / "self_attn" / "o_proj", behind_attention(c)),
      gate_(w / "mlp" / "gate_proj", no_bias(c.hidden, c.mlp_hidden)),
      up_(w / "mlp" / "up_proj", no_bias(c.hidden, c.mlp_hidden)),
      down_(w / "mlp" / "down_proj", no_bias(c.mlp_hidden, c.hidden)),
      q_norm_(head_norm(w / "self_attn" / "q_norm", c)),
      k_norm_(head_norm(w / "self_attn" / "k_norm", c)),
      head_width_(c.head_width) {}

Tensor CausalLmLayer::attend(const Tensor& x_1TC, const PackedPrompts& prompts,
                             const HalfSplitRope& rope) const {
  const auto rotated = [&](const Linear& project, const std::optional<LlamaRmsNorm>& norm) {
    const auto heads = split_heads(project(x_1TC), head_width_);
    return ops::rotate_halves(norm ? (*norm)(heads) : heads, rope);
  };
  const auto q = rotated(q_, q_norm_), k = rotated(k_, k_norm_);
  const auto v = split_heads(v_(x_1TC), head_width_);
  std::vector<Tensor> attended;
  for (const auto& prompt : prompts.prompts()) {
    const auto text = [&](const Tensor& x) {
      return x.narrow(1, prompt.text_begin(), prompt.text);
    };
    if (prompt.before > 0)
      attended.push_back(at::zeros({1, prompt.before, q.size(2) * q.size(3)}, q.options()));
    attended.push_back(attend_tokens(ops::causal_attention, text(q), text(k), text(v)));
    if (prompt.behind > 0)
      attended.push_back(attend_tokens(
          ops::attention, q.narrow(1, prompt.text_begin() + prompt.text, prompt.behind), text(k),
          text(v)));
  }
  return at::cat(attended, 1);
}

Tensor CausalLmLayer::feed_forward(const Tensor& x_1TC) const {
  return down_(ops::swiglu(gate_(x_1TC), up_(x_1TC)));
}

Tensor CausalLmLayer::operator()(const Tensor& x_1TC, const PackedPrompts& prompts,
                                 const HalfSplitRope& rope) const {
  const auto h = x_1TC + proj_(attend(attention_norm_(x_1TC), prompts, rope));
  return h + feed_forward(mlp_norm_(h));
}

CausalLm::CausalLm(const CausalLmConfig& c, HiddenStates states, const Weights& w)
    : config_(c),
      states_(counted_from_0(std::move(states), c)),
      options_(at::TensorOptions(w.dtype()).device(w.device())),
      embedding_(w / "embed_tokens", c.vocab_size, c.hidden),
      layers_(w / "layers", largest(states_), c) {
  const auto norm = w / "norm";
  if (largest(states_) == c.num_layers)
    norm_.emplace(norm, c.hidden, c.eps);
  else
    w.wants_unused() ? (void)LlamaRmsNorm(norm, c.hidden, c.eps) : norm.skip();
  for (auto i = largest(states_); i < c.num_layers; ++i) {
    const auto unused = w / "layers" / i;
    w.wants_unused() ? (void)CausalLmLayer(unused, c) : unused.skip();
  }
  w.finish();
}

Tensor CausalLm::operator()(const Tensor& ids_BL, std::span<const TextRun> texts, Pads pads) const {
  require(ids_BL.max().item<std::int64_t>() < config_.vocab_size, "the tokenizer makes token ",
          ids_BL.max().item<std::int64_t>(), ", the text encoder knows ", config_.vocab_size);
  require_within_window(config_, ids_BL.size(1));
  const PackedPrompts prompts(ids_BL, texts, pads);
  const auto rope =
      half_split_rope(prompts.positions_T(), config_.head_width, config_.theta, options_);
  auto x = embedding_(prompts.ids_1T());
  std::vector<Tensor> made(states_.size());
  const auto keep = [&](std::int64_t state) {
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i] == state) made[i] = x;
  };
  keep(0);
  layers_.for_each([&](std::int64_t i, const CausalLmLayer& layer) {
    x = layer(x, prompts, rope);
    keep(i + 1);  // the last one is normed below
  });
  if (norm_)
    for (std::size_t i = 0; i < states_.size(); ++i)
      if (states_[i] == config_.num_layers) made[i] = (*norm_)(x);
  return prompts.unpacked(at::cat(made, -1));
}

}  // namespace braid
