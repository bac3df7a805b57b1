#include "model.h"

#include <ATen/ATen.h>

#include <array>

#include "base/error.h"

namespace braid::toy {
namespace {

constexpr double kEps = 1e-6;

}  // namespace

ToyConfig read_toy_config(const JsonObject& json) {
  ToyConfig c;
  c.num_blocks = json.integer_or("num_blocks", c.num_blocks, 1, 100);
  c.num_heads = json.integer_or("num_heads", c.num_heads, 1, 100);
  c.num_kv_heads = json.integer_or("num_kv_heads", c.num_kv_heads, 1, c.num_heads);
  require(c.num_heads % c.num_kv_heads == 0, json.source(), ": 'num_kv_heads' should divide ",
          c.num_heads, ", it is ", c.num_kv_heads);
  return c;
}

ToyBlock::ToyBlock(const Weights& w, const ToyConfig& c)
    : mod_(w / "mod", {.in = c.hidden(), .out = 3 * c.hidden()}),
      qkv_(w / "qkv", {.in = c.hidden(), .out = c.hidden() + 2 * c.kv_width(), .bias = Bias::kNo}),
      proj_(w / "proj", {.in = c.hidden(), .out = c.hidden()}),
      up_(w / "up", {.in = c.hidden(), .out = c.mlp_hidden()}),
      down_(w / "down", {.in = c.mlp_hidden(), .out = c.hidden()}),
      q_norm_(w / "q_norm", c.head_width, kEps),
      k_norm_(w / "k_norm", c.head_width, kEps),
      config_(c) {}

Tensor ToyBlock::operator()(const Tensor& x_BLC, const Tensor& vec_BC, const Rope& rope,
                            const Attend& attend) const {
  const auto parts = mod_(vec_BC).unsqueeze(1).chunk(3, -1);
  const Modulation mod{.shift = parts[0], .scale = parts[1], .gate = parts[2]};
  const auto fused = qkv_(ops::modulated_norm(x_BLC, mod));
  const auto group = config_.num_heads / config_.num_kv_heads;
  const auto kv_width = fused.size(-1) / (group + 2);
  const auto split = fused.split_with_sizes({group * kv_width, kv_width, kv_width}, -1);
  const auto heads = [&](const Tensor& part, const RmsNorm& norm) {
    return std::array{ops::NormedHeads{split_heads(part, config_.head_width), norm.weight()}};
  };
  const auto q = ops::normed_rotated(heads(split[0], q_norm_), kEps, rope);
  const auto k = ops::normed_rotated(heads(split[1], k_norm_), kEps, rope);
  const auto y = proj_(attend_tokens(attend, q, k, split_heads(split[2], config_.head_width)));
  const auto x = ops::gated_residual(x_BLC, mod.gate, y);
  return x + down_(up_.gelu(x));
}

Toy::Inputs::Inputs(const Weights& w, const ToyConfig& c)
    : image(w / "image_in", {.in = c.channels, .out = c.hidden()}),
      text(w / "text_in", {.in = c.text_width, .out = c.hidden()}),
      time(w / "time_in", {.in = 1, .out = c.hidden()}) {}

Toy::Toy(const ToyConfig& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_blocks)),
      attend_(std::move(attend)),
      inputs_(load_end<Inputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "blocks", run_, c),
      output_(load_end<Linear>(w / "out", place_if(run_.has_last()),
                               LinearShape{.in = c.hidden(), .out = c.channels})) {
  w.finish();
}

Tensor Toy::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto num_text = in.text.x_BLC.size(1), num_image = in.noise.x_BLC.size(1);
  const auto num_tokens = num_text + num_image;
  const auto dtype = in.text.x_BLC.scalar_type();
  auto x = inputs_ ? at::cat({inputs_->text(in.text.x_BLC), inputs_->image(in.noise.x_BLC)}, 1)
                   : state.narrow(1, 0, num_tokens);
  const auto vec_BC = inputs_ ? at::silu(inputs_->time(in.timestep_B.to(dtype).unsqueeze(1)))
                              : state.select(1, num_tokens);
  const auto rope = rope_of(text_and_images(in), config_.rope_axes());
  blocks_.for_each([&](std::int64_t i, const ToyBlock& block) {
    x = block(x, vec_BC, rope, attend_);
    if (in.watch) in.watch("blocks." + std::to_string(i), x.narrow(1, num_text, num_image));
  });
  if (!output_) return at::cat({x, vec_BC.unsqueeze(1)}, 1);
  return (*output_)(x.narrow(1, num_text, num_image));
}

Names toy_names() { return {.spellings = {{"image_in", {"embed.image"}}}}; }

ShardingTable toy_sharding(const ToyConfig& c, SharedModulation modulation) {
  const Pieces heads{c.num_kv_heads};
  ShardingTable table = {
      {"blocks.*.qkv", column_parallel(heads, {c.hidden(), c.kv_width(), c.kv_width()})},
      {"blocks.*.proj", row_parallel(heads)},
      {"blocks.*.up", column_parallel()},
      {"blocks.*.down", row_parallel()}};
  if (modulation == SharedModulation::kYes)
    table.push_back({"blocks.*.mod", column_parallel_gathered()});
  return table;
}

// Roughly: forecasts of time and of activations are tested with published models.
DenoiserShape toy_shape(const ToyConfig& c) {
  const double h = double(c.hidden()), kv = double(c.kv_width()), m = double(c.mlp_hidden());
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_kv_heads,
          .head_width = c.head_width,
          .in_width = c.channels,
          .out_width = c.channels,
          .text_width = c.text_width,
          .state_vectors = 1,
          .blocks = {{.name = "block",
                      .count = c.num_blocks,
                      .dense_flops = 2 * (h * (h + 2 * kv) + h * h + 2 * h * m),
                      .all_reduces = 2,
                      .peak_elements = {2 * h, 2 * m},
                      .widest_output = m,
                      .traffic_elements = {12 * h, 30 * h}}}};
}

}  // namespace braid::toy
