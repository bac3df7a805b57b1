#include "models/krea2/config.h"
#include "models/krea2/ends.h"

namespace braid {
namespace {

double dense_flops(const Krea2Widths& c) {
  const auto h = double(c.hidden);
  return 2 * h * (3 * h + 2 * double(c.kv_width()) + 3 * double(c.mlp_hidden));
}

// The widest place is the MLP: the tokens before and after attention and their norm, [gate | value]
// and their product.
BlockCost blocks_of(const Krea2Config& config) {
  const auto& c = config.image;
  const auto h = double(c.hidden), m = double(c.mlp_hidden), kv = double(c.kv_width());
  return {
      .name = "blocks",
      .count = config.num_layers,
      .dense_flops = dense_flops(c),
      .all_reduces = 2,
      .peak_elements = {.whole = 3 * h, .shared = 3 * m},
      .widest_output = 2 * m,
      .kernels = 51,
      .layers = 5,
      // whole: two modulated norms, as ATen spells them in float32, 14 each, two gated residuals
      // 3 each; shared: the gate 5, q and k normed and rotated 36, SwiGLU in two passes 5
      .traffic_elements = {.whole = 34 * h, .shared = 41 * h + 36 * kv + 5 * m},
      .inputs = {.whole = 3 * h, .shared = h + m},
      .gated_sums = 2,
      .gated_kernels = 2,
      .gated_elements = 6 * h};
}

// Once per picture. All taps of a token live at once; a block's MLP is its widest place.
BlockCost text_fusion_of(const Krea2Config& config) {
  const auto& c = config.text;
  const auto taps = double(config.num_taps), h = double(config.image.hidden), w = double(c.hidden);
  const auto of_taps = taps * double(config.num_tap_blocks),
             of_text = double(config.num_text_blocks);
  return {.name = "text fusion",
          .count = 1,
          .scope = TokenScope::kText,
          .use = BlockUse::kOncePerPicture,
          .dense_flops = (of_taps + of_text) * dense_flops(c) + 2 * h * (w + h),
          .peak_elements = {.whole = taps * (3 * w + 3 * double(c.mlp_hidden)) + 2 * h}};
}

}  // namespace

DenoiserShape krea2_shape(const Krea2Config& c) {
  return {.hidden = c.image.hidden,
          .num_heads = c.image.num_heads,
          .num_kv_heads = c.image.num_kv_heads,
          .head_width = c.image.head_width(),
          .in_width = c.token_width,
          .out_width = c.token_width,
          .text_width = c.num_taps * c.text.hidden,
          .shared_modulations = kKrea2Vectors * c.image.hidden,
          .blocks = {blocks_of(c), text_fusion_of(c)}};
}

}  // namespace braid
