#include "model.h"

#include <ATen/ATen.h>

#include <array>

#include "base/error.h"

namespace braid::toy {
namespace {

constexpr double kStickerEps = 1e-6;

Modulation modulation_of(const Linear& mod, const Tensor& vec_BC) {
  const auto parts = mod(vec_BC).unsqueeze(1).chunk(3, -1);
  return {.shift = parts[0], .scale = parts[1], .gate = parts[2]};
}

// of_prefix() of the first tokens, of_image() of the others.
Tensor by_run(std::int64_t prefix, std::int64_t all,
              const std::function<Tensor(std::int64_t begin, std::int64_t count)>& of_prefix,
              const std::function<Tensor(std::int64_t begin, std::int64_t count)>& of_image) {
  if (prefix == 0) return of_image(0, all);
  if (prefix == all) return of_prefix(0, all);
  return at::cat({of_prefix(0, prefix), of_image(prefix, all - prefix)}, 1);
}

Tensor spans_of_prefix(const DenoiserInput& in) {
  std::vector<Tensor> parts = {in.text.span_L2};
  for (const auto& reference : in.references) parts.push_back(reference.span_L2);
  return at::cat(parts);
}

}  // namespace

StickerConfig read_sticker_config(const JsonObject& json) {
  StickerConfig c;
  c.num_blocks = json.integer_or("num_blocks", c.num_blocks, 1, 100);
  return c;
}

StickerBlock::StickerBlock(const Weights& w, const StickerConfig& c)
    : mod_(w / "mod", {.in = c.hidden(), .out = 3 * c.hidden()}),
      qkv_(w / "qkv", {.in = c.hidden(), .out = c.hidden() + 2 * c.kv_width(), .bias = Bias::kNo}),
      proj_(w / "proj", {.in = c.hidden(), .out = c.hidden()}),
      up_(w / "up", {.in = c.hidden(), .out = c.mlp_hidden()}),
      down_(w / "down", {.in = c.mlp_hidden(), .out = c.hidden()}),
      q_norm_(w / "q_norm", c.head_width, kStickerEps),
      k_norm_(w / "k_norm", c.head_width, kStickerEps),
      config_(c) {}

Tensor StickerBlock::operator()(const Tensor& x_BLC, const StickerTimes& times, const Rope& rope,
                                const Tensor& span_P2, const Attend& attend) const {
  const auto image = modulation_of(mod_, times.image_BC);
  const auto prefix = modulation_of(mod_, times.prefix_BC);
  const auto num_prefix = span_P2.size(0), num_all = x_BLC.size(1);
  const auto normed = [&](const Modulation& mod) {
    return [&](std::int64_t begin, std::int64_t count) {
      return ops::modulated_norm(x_BLC.narrow(1, begin, count), mod);
    };
  };
  const auto fused = qkv_(by_run(num_prefix, num_all, normed(prefix), normed(image)));
  const auto group = config_.num_heads / config_.num_kv_heads;
  const auto kv_width = fused.size(-1) / (group + 2);
  const auto split = fused.split_with_sizes({group * kv_width, kv_width, kv_width}, -1);
  const auto heads = [&](const Tensor& part, const RmsNorm& norm) {
    return std::array{ops::NormedHeads{split_heads(part, config_.head_width), norm.weight()}};
  };
  const auto q = ops::normed_rotated(heads(split[0], q_norm_), kStickerEps, rope);
  const auto k = ops::normed_rotated(heads(split[1], k_norm_), kStickerEps, rope);
  const auto y =
      proj_(attend_behind_prefix(attend, q, k, split_heads(split[2], config_.head_width), span_P2));
  const auto gated = [&](const Modulation& mod) {
    return [&](std::int64_t begin, std::int64_t count) {
      return ops::gated_residual(x_BLC.narrow(1, begin, count), mod.gate,
                                 y.narrow(1, begin, count));
    };
  };
  const auto x = by_run(num_prefix, num_all, gated(prefix), gated(image));
  return x + down_(up_.gelu(x));
}

Sticker::Inputs::Inputs(const Weights& w, const StickerConfig& c)
    : image(w / "sticker_in", {.in = c.channels, .out = c.hidden()}),
      text(w / "text_in", {.in = c.text_width, .out = c.hidden()}),
      time(w / "time_in", {.in = 1, .out = c.hidden()}) {}

Tensor Sticker::Inputs::tokens(const DenoiserInput& in) const {
  std::vector<Tensor> runs = {text(in.text.x_BLC)};
  for (const auto& reference : in.references) runs.push_back(image(reference.x_BLC));
  runs.push_back(image(in.noise.x_BLC));
  return at::cat(runs, 1);
}

StickerTimes Sticker::Inputs::times(const DenoiserInput& in) const {
  const auto t_B1 = in.timestep_B.to(in.noise.x_BLC.scalar_type()).unsqueeze(1);
  const auto vector = [&](const Tensor& x) { return at::silu(time(x)); };
  return {.image_BC = vector(t_B1), .prefix_BC = vector(at::zeros_like(t_B1))};
}

Sticker::Sticker(const StickerConfig& c, const Weights& w, Attend attend,
                 std::optional<BlockRange> run)
    : config_(c),
      run_(run_of(run, c.num_blocks)),
      attend_(std::move(attend)),
      inputs_(load_end<Inputs>(w, place_if(run_.has_first()), c)),
      blocks_(w / "blocks", run_, c),
      output_(load_end<Linear>(w / "out", place_if(run_.has_last()),
                               LinearShape{.in = c.hidden(), .out = c.channels})) {
  w.finish();
}

Tensor Sticker::advance(const DenoiserInput& in, const Tensor& state) const {
  const auto span_P2 = spans_of_prefix(in);
  const auto num_prefix = span_P2.size(0), num_image = in.noise.x_BLC.size(1);
  const auto num_all = num_prefix + num_image;
  auto x = inputs_ ? inputs_->tokens(in) : state.narrow(1, 0, num_all);
  const auto times = inputs_ ? inputs_->times(in)
                             : StickerTimes{.image_BC = state.select(1, num_all),
                                            .prefix_BC = state.select(1, num_all + 1)};
  const auto rope = rope_of(prefix_and_image(in), config_.rope_axes());
  const auto image_of = [&](const Tensor& all) { return all.narrow(1, num_prefix, num_image); };
  blocks_.for_each([&](std::int64_t i, const StickerBlock& block) {
    x = block(x, times, rope, span_P2, attend_);
    if (in.watch) in.watch("blocks." + std::to_string(i), image_of(x));
  });
  if (output_) return (*output_)(image_of(x));
  return at::cat({x, times.image_BC.unsqueeze(1), times.prefix_BC.unsqueeze(1)}, 1);
}

// Modulations are whole on every rank: text and image have vectors of their own.
ShardingTable sticker_sharding(const StickerConfig& c) {
  const Pieces heads{c.num_kv_heads};
  return {{"blocks.*.qkv", column_parallel(heads, {c.hidden(), c.kv_width(), c.kv_width()})},
          {"blocks.*.proj", row_parallel(heads)},
          {"blocks.*.up", column_parallel()},
          {"blocks.*.down", row_parallel()}};
}

DenoiserShape sticker_shape(const StickerConfig& c) {
  const double h = double(c.hidden()), kv = double(c.kv_width()), m = double(c.mlp_hidden());
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_kv_heads,
          .head_width = c.head_width,
          .in_width = c.channels,
          .out_width = c.channels,
          .text_width = c.text_width,
          .state_vectors = 2,
          .text = TextTokens::kPrefix,
          .blocks = {{.name = "block",
                      .count = c.num_blocks,
                      .dense_flops = 2 * (h * (h + 2 * kv) + h * h + 2 * h * m),
                      .all_reduces = 2,
                      .peak_elements = {2 * h, 2 * m},
                      .widest_output = m,
                      .traffic_elements = {12 * h, 30 * h}}}};
}

}  // namespace braid::toy
