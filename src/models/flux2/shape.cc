#include "models/flux2/config.h"

namespace braid {
namespace {

// For both kinds of blocks: attention has four layers of the hidden width; the MLP has gate, value
// and output.
double dense_flops(double hidden, double mlp) { return 2 * hidden * (4 * hidden + 3 * mlp); }

// Reads and writes of both kinds, as in ops/reference.cc: norms of q and k 4, their rotation 40 (in
// float32), attention 6.
constexpr double kAttentionMoves = 50;

// The widest place is the MLP's first layer: the residual tokens before and after attention and its
// norm, [gate | value] and their product.
BlockCost double_block(const Flux2Config& c) {
  const auto h = double(c.hidden()), m = double(c.mlp_hidden);
  return {.name = "double",
          .count = c.num_double,
          .dense_flops = dense_flops(h, m),
          .all_reduces = 2,
          .live = {.whole = 3 * h, .shared = 3 * m},
          .widest = 2 * m,
          // whole: two norms 6 each, two gated residuals 5, inputs and outputs of dense layers 4;
          // shared: joining text and image 6, qkv and proj 4, gate and value, their product, its
          // use
          .moved = {.whole = 26 * h, .shared = (kAttentionMoves + 10) * h + 8 * m},
          .has_sides = true};
}

// The widest place is the last layer: the residual tokens and the result, [q k v gate value],
// rotated q, attended and [attended | mlp], minus v, which counts with the keys and values.
BlockCost single_block(const Flux2Config& c) {
  const auto h = double(c.hidden()), m = double(c.mlp_hidden);
  return {.name = "single",
          .count = c.num_single,
          .dense_flops = dense_flops(h, m),
          .all_reduces = 1,
          .live = {.whole = 2 * h, .shared = 5 * h + 3 * m},
          .widest = 3 * h + 2 * m,
          // whole: a norm, a gated residual, inputs and outputs of dense layers 2; shared: qkv 3,
          // joining with the MLP 2, its use 1; gate and value, their product, joining 2, its use
          .moved = {.whole = 13 * h, .shared = (kAttentionMoves + 6) * h + 10 * m}};
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
