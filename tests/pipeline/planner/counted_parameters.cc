#include "pipeline/planner/counted_parameters.h"

#include <algorithm>

namespace braid {
namespace {

constexpr std::int64_t kSinusoid = 256;  // width of an embedded timestep or guidance scale

std::int64_t linear(std::int64_t in, std::int64_t out) { return in * out + out; }

// A column-parallel layer splits its bias too; of a row-parallel layer every rank has the bias.
Parameters column_parallel(std::int64_t in, std::int64_t out) {
  return {.shared = linear(in, out)};
}
Parameters row_parallel(std::int64_t in, std::int64_t out) {
  return {.shared = in * out, .whole = out};
}

// adaLN layers, whose outputs are gathered if they are split.
Parameters modulation_layer(std::int64_t hidden, std::int64_t vectors,
                            SharedModulation modulation) {
  const auto count = linear(hidden, vectors * hidden);
  return modulation == SharedModulation::kYes ? Parameters{.shared = count}
                                              : Parameters{.whole = count};
}

Parameters sum(std::initializer_list<Parameters> parts) {
  Parameters total;
  for (const auto& part : parts) total += part;
  return total;
}

std::int64_t embedder(std::int64_t in, std::int64_t hidden) {
  return linear(in, hidden) + linear(hidden, hidden);
}

std::int64_t conv(std::int64_t in, std::int64_t out, std::int64_t kernel = 3) {
  return in * out * kernel * kernel + out;
}

std::int64_t resnet(std::int64_t in, std::int64_t out) {
  return 2 * in + 2 * out + conv(in, out) + conv(out, out) + (in == out ? 0 : conv(in, out, 1));
}

std::int64_t middle(const VaeConfig& c) {
  const auto width = c.widths.back();
  const auto attention = 2 * width + linear(width, 3 * width) + linear(width, width);
  return 2 * resnet(width, width) + (c.mid_attention ? attention : 0);
}

}  // namespace

Parameters& Parameters::operator+=(const Parameters& more) {
  shared += more.shared;
  whole += more.whole;
  return *this;
}

Parameters operator*(std::int64_t count, const Parameters& each) {
  return {.shared = count * each.shared, .whole = count * each.whole};
}

FluxParameters count_flux(const FluxConfig& c, SharedModulation modulation) {
  const auto h = c.hidden(), m = c.mlp_hidden();
  const Parameters qk_norms{.whole = 2 * c.head_width};
  const auto side = sum({modulation_layer(h, 6, modulation), column_parallel(h, 3 * h),
                         row_parallel(h, h), column_parallel(h, m), row_parallel(m, h), qk_norms});
  FluxParameters count;
  count.embedders.whole = linear(c.in_channels, h) + linear(c.text_width, h) +
                          (c.guidance_embeds ? 2 : 1) * embedder(kSinusoid, h) +
                          embedder(c.pooled_width, h);
  count.double_block = 2 * side;
  count.single_block = sum({modulation_layer(h, 3, modulation), column_parallel(h, 3 * h + m),
                            row_parallel(h + m, h), qk_norms});
  count.last_layer =
      sum({modulation_layer(h, 2, modulation), {.whole = linear(h, c.out_channels)}});
  return count;
}

Parameters FluxParameters::total(const FluxConfig& c) const {
  return sum({embedders, c.num_double * double_block, c.num_single * single_block, last_layer});
}

Parameters count_t5_down(const T5Config& c) {
  return {.shared = c.num_layers * c.mlp_hidden * c.hidden};
}

// No layer has a bias.
Parameters count_t5(const T5Config& c) {
  const auto attention = 4 * c.hidden * c.num_heads * c.head_width;
  const auto mlp = 3 * c.hidden * c.mlp_hidden;
  const auto norms = 2 * c.hidden;
  return {.shared = c.num_layers * (attention + mlp) + c.num_buckets * c.num_heads,
          .whole = c.vocab_size * c.hidden + c.num_layers * norms + c.hidden};
}

Parameters count_clip(const ClipConfig& c) {
  const Parameters norm{.whole = 2 * c.hidden};
  const auto layer = sum({column_parallel(c.hidden, 3 * c.hidden), row_parallel(c.hidden, c.hidden),
                          column_parallel(c.hidden, c.mlp_hidden),
                          row_parallel(c.mlp_hidden, c.hidden), 2 * norm});
  return sum({{.whole = (c.vocab_size + c.max_positions) * c.hidden}, c.num_layers * layer, norm});
}

std::int64_t count_vae_decoder(const VaeConfig& c) {
  auto count = conv(c.latent_channels, c.widths.back()) + middle(c) + 2 * c.widths.front() +
               conv(c.widths.front(), c.image_channels);
  if (c.post_quant_conv) count += conv(c.latent_channels, c.latent_channels, 1);
  auto in = c.widths.back();
  for (auto width = c.widths.rbegin(); width != c.widths.rend(); ++width) {
    for (std::int64_t i = 0; i <= c.layers_per_block; ++i)
      count += resnet(i == 0 ? in : *width, *width);
    in = *width;
    if (width + 1 != c.widths.rend()) count += conv(in, in);
  }
  return count;
}

Parameters parameters_of(const Stage& stage, const FluxConfig& c, SharedModulation modulation) {
  const auto p = count_flux(c, modulation);
  const auto doubles =
      std::clamp<std::int64_t>(c.num_double - stage.first_block, 0, stage.num_blocks);
  auto sum = doubles * p.double_block;
  sum += (stage.num_blocks - doubles) * p.single_block;
  if (stage.is_first) sum += p.embedders;
  if (stage.is_last) sum += p.last_layer;
  return sum;
}

}  // namespace braid
