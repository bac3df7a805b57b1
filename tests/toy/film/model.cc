#include "model.h"

#include <ATen/ATen.h>

#include <array>

#include "base/error.h"

namespace braid::toy {
namespace {

constexpr double kFilmEps = 1e-6;

}  // namespace

FilmConfig read_film_config(const JsonObject& json) {
  FilmConfig c;
  c.num_blocks = json.integer_or("num_blocks", c.num_blocks, 1, 100);
  return c;
}

FilmBlock::FilmBlock(const Weights& w, const FilmConfig& c)
    : mod_(w / "mod", {.in = c.hidden(), .out = 3 * c.hidden()}),
      qkv_(w / "qkv", {.in = c.hidden(), .out = 3 * c.hidden(), .bias = Bias::kNo}),
      proj_(w / "proj", {.in = c.hidden(), .out = c.hidden()}),
      text_q_(w / "text_q", {.in = c.hidden(), .out = c.hidden()}),
      text_kv_(w / "text_kv", {.in = c.hidden(), .out = 2 * c.hidden()}),
      text_proj_(w / "text_proj", {.in = c.hidden(), .out = c.hidden()}),
      up_(w / "up", {.in = c.hidden(), .out = c.mlp_hidden()}),
      down_(w / "down", {.in = c.mlp_hidden(), .out = c.hidden()}),
      q_norm_(w / "q_norm", c.head_width, kFilmEps),
      k_norm_(w / "k_norm", c.head_width, kFilmEps),
      config_(c) {}

Tensor FilmBlock::among_image(const Tensor& normed_BIC, const Rope& rope,
                              const Attend& attend) const {
  const auto qkv = qkv_(normed_BIC).chunk(3, -1);
  const auto heads = [&](const Tensor& part, const RmsNorm& norm) {
    return std::array{ops::NormedHeads{split_heads(part, config_.head_width), norm.weight()}};
  };
  const auto q = ops::normed_rotated(heads(qkv[0], q_norm_), kFilmEps, rope);
  const auto k = ops::normed_rotated(heads(qkv[1], k_norm_), kFilmEps, rope);
  return proj_(attend_tokens(attend, q, k, split_heads(qkv[2], config_.head_width)));
}

Tensor FilmBlock::to_text(const Tensor& x_BIC, const Tensor& text_BTC) const {
  const auto heads = [&](const Tensor& x) { return split_heads(x, config_.head_width); };
  const auto kv = text_kv_(text_BTC).chunk(2, -1);
  return text_proj_(
      attend_tokens(attention_here, heads(text_q_(x_BIC)), heads(kv[0]), heads(kv[1])));
}

Tensor FilmBlock::operator()(const Tensor& x_BIC, const Tensor& text_BTC, const Tensor& vec_BC,
                             const Rope& rope, const Attend& attend) const {
  const auto parts = mod_(vec_BC).unsqueeze(1).chunk(3, -1);
  const Modulation mod{.shift = parts[0], .scale = parts[1], .gate = parts[2]};
  auto x = ops::gated_residual(x_BIC, mod.gate,
                               among_image(ops::modulated_norm(x_BIC, mod), rope, attend));
  x = x + to_text(x, text_BTC);
  return x + down_(up_.gelu(x));
}

Film::Inputs::Inputs(const Weights& w, const FilmConfig& c)
    : image(w / "film_in", {.in = c.channels, .out = c.hidden()}),
      text(w.once() / "text_in", {.in = c.text_width, .out = c.hidden()}),
      time(w / "time_in", {.in = 1, .out = c.hidden()}) {}

Film::Film(const FilmConfig& c, const Weights& w, Attend attend, std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_blocks)),
      attend_(std::move(attend)),
      inputs_(load_end<Inputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "blocks", run_, c),
      output_(load_end<Linear>(w / "out", place_if(run_.has_last()),
                               LinearShape{.in = c.hidden(), .out = c.channels})) {
  w.finish();
}

Tensor Film::refine(const DenoiserInput& in, const Tensor& text_BTC) const {
  return inputs_ ? inputs_->text.gelu(in.text.x_BLC) : text_BTC;
}

Tensor Film::advance(const DenoiserInput& in, const Tensor& state) const {
  check(in.refined_BTC.defined(), "the text should be embedded before the first step");
  const auto num_tokens = in.noise.x_BLC.size(1);
  const auto dtype = in.noise.x_BLC.scalar_type();
  auto x = inputs_ ? inputs_->image(in.noise.x_BLC) : state.narrow(1, 0, num_tokens);
  const auto vec_BC = inputs_ ? at::silu(inputs_->time(in.timestep_B.to(dtype).unsqueeze(1)))
                              : state.select(1, num_tokens);
  const auto rope = rope_of({&in.noise}, config_.rope_axes());
  blocks_.for_each([&](std::int64_t i, const FilmBlock& block) {
    x = block(x, in.refined_BTC, vec_BC, rope, attend_);
    if (in.watch) in.watch("blocks." + std::to_string(i), x);
  });
  return output_ ? (*output_)(x) : at::cat({x, vec_BC.unsqueeze(1)}, 1);
}

ShardingTable film_sharding(const FilmConfig& c, SharedModulation modulation) {
  const auto h = c.hidden();
  const Pieces heads{c.num_heads};
  ShardingTable table = {{"blocks.*.qkv", column_parallel(heads, {h, h, h})},
                         {"blocks.*.proj", row_parallel(heads)},
                         {"blocks.*.text_q", column_parallel(heads)},
                         {"blocks.*.text_kv", column_parallel(heads, {h, h})},
                         {"blocks.*.text_proj", row_parallel(heads)},
                         {"blocks.*.up", column_parallel()},
                         {"blocks.*.down", row_parallel()}};
  if (modulation == SharedModulation::kYes)
    table.push_back({"blocks.*.mod", column_parallel_gathered()});
  return table;
}

DenoiserShape film_shape(const FilmConfig& c) {
  const double h = double(c.hidden()), m = double(c.mlp_hidden());
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width,
          .in_width = c.channels,
          .out_width = c.channels,
          .text_width = c.text_width,
          .state_vectors = 1,
          .text = TextTokens::kCross,
          .blocks = {{.name = "block",
                      .count = c.num_blocks,
                      .scope = TokenScope::kImage,
                      .dense_flops = 2 * (6 * h * h + 2 * h * m),
                      .text_flops = 4 * h * h,
                      .all_reduces = 3,
                      .peak_elements = {2 * h, 2 * m},
                      .widest_output = m,
                      .traffic_elements = {14 * h, 40 * h}}}};
}

}  // namespace braid::toy
