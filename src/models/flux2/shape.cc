#include "models/flux2/config.h"

namespace braid {
namespace {

// Both kinds of blocks have the same layers: attention has four layers of the hidden width; the MLP
// has gate, value and output.
double dense_flops(double hidden, double mlp) { return 2 * hidden * (4 * hidden + 3 * mlp); }

// The widest place is the MLP's first layer: the residual tokens before and after attention and its
// norm, [gate | value] and their product.
BlockCost double_block(const Flux2Config& c) {
  const auto h = double(c.hidden()), m = double(c.mlp_hidden);
  return {.name = "double",
          .count = c.num_double,
          .dense_flops = dense_flops(h, m),
          .all_reduces = 2,
          .peak_elements = {.whole = 3 * h, .shared = 3 * m},
          .widest_output = 2 * m,
          .kernels = 20,
          .layers = 8,
          // whole: a norm 2, a gated residual with a norm 4 and one without 3; shared: q and k,
          // normed and rotated 4, SwiGLU in two passes
          .traffic_elements = {.whole = 9 * h, .shared = 4 * h + 5 * m},
          .inputs = {.whole = 2 * h, .shared = h + m},
          .coded = {.whole = 2 * h},  // the norms
          .coded_layers = 4,
          .gated_sums = 2,
          .gated_kernels = 2,       // behind the MLP; behind attention they are norms
          .gated_elements = 5 * h,  // there 2 of 4 widths
          .has_sides = true};
}

// The widest place is the last layer: the residual tokens and the result, [q k v gate value],
// attended and [attended | mlp], minus two widths, which count as keys and values.
BlockCost single_block(const Flux2Config& c) {
  const auto h = double(c.hidden()), m = double(c.mlp_hidden);
  return {.name = "single",
          .count = c.num_single,
          .dense_flops = dense_flops(h, m),
          .all_reduces = 1,
          .peak_elements = {.whole = 2 * h, .shared = 3 * h + 3 * m},
          .widest_output = 3 * h + 2 * m,
          .kernels = 9,
          .layers = 2,
          // whole: a norm 2, a gated residual 3; shared: q and k, normed and rotated 4, SwiGLU in
          // two passes
          .traffic_elements = {.whole = 5 * h, .shared = 4 * h + 5 * m},
          .inputs = {.whole = h, .shared = h + m},
          .coded = {.whole = h},
          .coded_layers = 1,
          .gated_sums = 1,
          .gated_kernels = 1,
          .gated_elements = 3 * h,
          // attention is copied beside the MLP, by a kernel in the place of a second product
          .activated = {.whole = 0, .shared = 2 * h}};
}

}  // namespace

// Besides the tokens, the state holds the modulations (shift, scale and gate in five places) and
// the vector from which the last norm's are computed.
DenoiserShape flux2_shape(const Flux2Config& c) {
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width,
          .in_width = c.in_channels,
          .out_width = c.out_channels,
          .text_width = c.text_width,
          .pooled_width = 0,
          .state_vectors = 5 * 3 + 1,
          .blocks = {double_block(c), single_block(c)}};
}

}  // namespace braid
