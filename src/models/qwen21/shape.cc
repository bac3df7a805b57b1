#include "models/qwen21/config.h"
#include "models/qwen21/ends.h"

namespace braid {

// The widest place is the MLP: the tokens before and after attention and their norm, [gate | value]
// and their product, minus a width that counts with the keys and values, which are gone.
DenoiserShape qwen21_shape(const Qwen21Config& c) {
  const auto h = double(c.hidden), m = double(c.mlp_hidden);
  const BlockCost blocks{.name = "blocks",
                         .count = c.num_layers,
                         .dense_flops = 2 * h * (4 * h + 3 * m),
                         .all_reduces = 2,
                         .peak_elements = {.whole = 3 * h, .shared = 3 * m - h},
                         .widest_output = 2 * m,
                         .kernels = 14,
                         .layers = 4,
                         // whole: two modulated norms 2 each, two gated residuals 3 each; shared: q
                         // and k normed and rotated 2 each, k and v copied behind the prefix's 2
                         // each, SwiGLU in two passes
                         .traffic_elements = {.whole = 10 * h, .shared = 8 * h + 5 * m},
                         .inputs = {.whole = 2 * h, .shared = h + m},
                         .gated_sums = 2,
                         .gated_kernels = 2,
                         .gated_elements = 6 * h};
  return {.hidden = c.hidden,
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width(),
          .in_width = c.token_width,
          .out_width = c.token_width,
          .text_width = c.text_width,
          .shared_modulations = kQwen21Vectors * c.hidden,
          .text = TextTokens::kPrefix,
          .prefix_has_time = !c.causal_condition,
          .blocks = {blocks}};
}

}  // namespace braid
