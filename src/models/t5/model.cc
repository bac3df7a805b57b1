#include "models/t5/model.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"

namespace braid {
namespace {

// The reference keeps this layer in float32 for float16 models: its outputs overflow.
at::ScalarType down_dtype(const Weights& w) {
  return w.dtype() == at::kHalf ? at::kFloat : w.dtype();
}

// As transformers does (modeling_t5.py, T5Block.forward): 1000 below float16's largest number, to
// all values, if one of them is infinite.
Tensor clamp_half(const Tensor& x) {
  if (x.scalar_type() != at::kHalf) return x;
  constexpr double kLargest = 65504;
  const auto largest = at::where(x.isinf().any(), kLargest - 1000, kLargest);
  return x.clamp(-largest, largest);
}

}  // namespace

T5Config read_t5_config(const JsonObject& json) {
  T5Config c;
  c.vocab_size = json.integer_or("vocab_size", 32128, 1, 1 << 24);
  c.hidden = json.integer_or("d_model", 512, 1, 1 << 20);
  c.mlp_hidden = json.integer_or("d_ff", 2048, 1, 1 << 20);
  c.num_layers = json.integer_or("num_layers", 6, 0, 10'000);
  c.num_heads = json.integer_or("num_heads", 8, 1, 1 << 14);
  c.head_width = json.integer_or("d_kv", 64, 1, 1 << 14);
  c.num_buckets = json.integer_or("relative_attention_num_buckets", 32, 4, 1 << 16);
  c.max_distance = json.integer_or("relative_attention_max_distance", 128, 1, 1 << 20);
  c.eps = json.number_or("layer_norm_epsilon", c.eps);
  require(c.eps >= 0, json.source(), ": 'layer_norm_epsilon' should not be below 0, it is ", c.eps);
  const auto activation = json.string_or("feed_forward_proj", "relu");
  require(activation == "gated-gelu", json.source(),
          ": 'feed_forward_proj' should be gated-gelu, it is ", activation);
  // transformers prefers these to that name, from which they follow otherwise
  const auto function = json.string_or("dense_act_fn", "gelu_new");
  require(function == "gelu_new", json.source(), ": 'dense_act_fn' should be gelu_new, it is ",
          function);
  require(json.is_set("is_gated_act"), json.source(), ": 'is_gated_act' should be true");
  require(!json.flag_or("is_decoder", false), json.source(), ": 'is_decoder' should be false");
  require(c.max_distance > c.num_buckets / 4, json.source(),
          ": 'relative_attention_max_distance' should exceed a quarter of the buckets, it is ",
          c.max_distance);
  return c;
}

T5Block::T5Block(const Weights& w, const T5Config& c)
    : attention_norm_(w / "layer" / 0 / "layer_norm", c.hidden, c.eps),
      mlp_norm_(w / "layer" / 1 / "layer_norm", c.hidden, c.eps),
      qkv_(w / "layer" / 0 / "SelfAttention" / "qkv",
           {.in = c.hidden, .out = 3 * c.num_heads * c.head_width, .bias = Bias::kNo}),
      proj_(w / "layer" / 0 / "SelfAttention" / "o",
            {.in = c.num_heads * c.head_width, .out = c.hidden, .bias = Bias::kNo}),
      gate_(w / "layer" / 1 / "DenseReluDense" / "wi_0",
            {.in = c.hidden, .out = c.mlp_hidden, .bias = Bias::kNo}),
      up_(w / "layer" / 1 / "DenseReluDense" / "wi_1",
          {.in = c.hidden, .out = c.mlp_hidden, .bias = Bias::kNo}),
      down_((w / "layer" / 1 / "DenseReluDense" / "wo").as(down_dtype(w)),
            {.in = c.mlp_hidden, .out = c.hidden, .bias = Bias::kNo}),
      head_width_(c.head_width) {}

Tensor T5Block::attend(const Tensor& x_BLC, const Tensor& bias_1HLL) const {
  const auto biased = [&](const Tensor& q, const Tensor& k, const Tensor& v) {
    // T5 does not divide scores by sqrt(D): its initialisation absorbs the factor
    return at::scaled_dot_product_attention(q, k, v, bias_1HLL.to(q.scalar_type()), 0.0,
                                            /*is_causal=*/false, /*scale=*/1.0);
  };
  const auto parts = qkv_(x_BLC).chunk(3, -1);
  return attend_tokens(biased, split_heads(parts[0], head_width_),
                       split_heads(parts[1], head_width_), split_heads(parts[2], head_width_));
}

Tensor T5Block::feed_forward(const Tensor& x_BLC) const {
  const auto wide = gate_.gelu(x_BLC) * up_(x_BLC);
  return down_(wide.scalar_type() == at::kHalf ? wide.to(at::kFloat) : wide);
}

Tensor T5Block::operator()(const Tensor& x_BLC, const Tensor& bias_1HLL) const {
  const auto h = clamp_half(x_BLC + proj_(attend(attention_norm_(x_BLC), bias_1HLL)));
  return clamp_half(h + feed_forward(mlp_norm_(h)));
}

T5::T5(const T5Config& c, const Weights& w)
    : config_(c),
      embedding_(w / "shared", c.vocab_size, c.hidden),
      relative_bias_(
          (w / "encoder" / "block" / 0 / "layer" / 0 / "SelfAttention" / "relative_attention_bias")
              .tensor("weight", {c.num_buckets, c.num_heads})),
      blocks_(w / "encoder" / "block", c.num_layers, c),
      final_norm_(w / "encoder" / "final_layer_norm", c.hidden, c.eps) {
  w.finish();
}

Tensor relative_position_buckets(std::int64_t length, const T5Config& c, at::Device device) {
  const auto positions = at::arange(length, at::TensorOptions(at::kLong).device(device));
  const auto distance = positions.unsqueeze(0) - positions.unsqueeze(1);  // key - query
  // half of the buckets look ahead; in each half, one half is exact, the other logarithmic
  const auto half = c.num_buckets / 2, exact = half / 2;
  const auto away = distance.abs();
  const auto logarithmic = at::log(away.to(at::kFloat) / double(exact)) /
                           std::log(double(c.max_distance) / double(exact)) * double(half - exact);
  const auto far = (exact + logarithmic.to(at::kLong)).clamp_max(half - 1);
  return (distance > 0).to(at::kLong) * half + at::where(away < exact, away, far);
}

Tensor T5::position_bias(std::int64_t length) const {
  const auto buckets_LL = relative_position_buckets(length, config_, relative_bias_.device());
  return at::embedding(relative_bias_, buckets_LL).permute({2, 0, 1}).unsqueeze(0).contiguous();
}

Tensor T5::operator()(const Tensor& ids_BL) const {
  require(ids_BL.max().item<std::int64_t>() < config_.vocab_size, "the T5 tokenizer makes token ",
          ids_BL.max().item<std::int64_t>(), ", the encoder knows ", config_.vocab_size);
  const auto bias = position_bias(ids_BL.size(1));
  auto x = embedding_(ids_BL);
  blocks_.for_each([&](std::int64_t, const T5Block& block) { x = block(x, bias); });
  return final_norm_(x);
}

ShardingTable t5_sharding(const T5Config& c) {
  const Pieces heads{c.num_heads}, channels = pieces_of_mlp(c.mlp_hidden, c.num_heads);
  const auto width = c.num_heads * c.head_width;
  return {
      {"encoder.block.*.layer.*.SelfAttention.qkv", column_parallel(heads, {width, width, width})},
      {"encoder.block.*.layer.*.SelfAttention.o", row_parallel(heads)},
      // one column per head: cut like the inputs of a row-parallel layer
      {"encoder.block.*.layer.*.SelfAttention.relative_attention_bias", row_parallel(heads)},
      {"encoder.block.*.layer.*.DenseReluDense.wi_0", column_parallel(channels)},
      {"encoder.block.*.layer.*.DenseReluDense.wi_1", column_parallel(channels)},
      {"encoder.block.*.layer.*.DenseReluDense.wo", row_parallel(channels)},
  };
}

Names t5_names() {
  const std::string block = "encoder.block.*.layer.", attention = block + "0.SelfAttention.",
                    mlp = block + "1.DenseReluDense.";
  // transformers' name for each module, then llama.cpp's
  return {.spellings = {{"shared", {"shared"}},
                        {"shared", {"encoder.embed_tokens"}},
                        {"shared", {"token_embd"}},
                        {attention + "qkv", {attention + "q", attention + "k", attention + "v"}},
                        {attention + "qkv",
                         {"enc.blk.*.attn_q", "enc.blk.*.attn_k", "enc.blk.*.attn_v"}},
                        {attention + "o", {attention + "o"}},
                        {attention + "o", {"enc.blk.*.attn_o"}},
                        {attention + "relative_attention_bias",
                         {attention + "relative_attention_bias"}},
                        {attention + "relative_attention_bias", {"enc.blk.*.attn_rel_b"}},
                        {block + "0.layer_norm", {block + "0.layer_norm"}},
                        {block + "0.layer_norm", {"enc.blk.*.attn_norm"}},
                        {mlp + "wi_0", {mlp + "wi_0"}},
                        {mlp + "wi_0", {"enc.blk.*.ffn_gate"}},
                        {mlp + "wi_1", {mlp + "wi_1"}},
                        {mlp + "wi_1", {"enc.blk.*.ffn_up"}},
                        {mlp + "wo", {mlp + "wo"}},
                        {mlp + "wo", {"enc.blk.*.ffn_down"}},
                        {block + "1.layer_norm", {block + "1.layer_norm"}},
                        {block + "1.layer_norm", {"enc.blk.*.ffn_norm"}},
                        {"encoder.final_layer_norm", {"encoder.final_layer_norm"}},
                        {"encoder.final_layer_norm", {"enc.output_norm"}}},
          // a duplicate of the table, the other half of T5, and ComfyUI's tokenizer in some files
          .ignored = {"encoder.embed_tokens.weight", "decoder.**", "dec.**", "lm_head.weight",
                      "output.weight", "spiece_model"}};
}

AdapterNames t5_adapter_names() {
  return {.prefixes = {"text_encoder_2.", "lora_te2_", "lora_te3_",
                       "text_encoders.t5xxl.transformer.", "t5."},
          .tables = {t5_names()}};
}

}  // namespace braid
