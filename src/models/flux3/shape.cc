#include "models/flux3/config.h"
#include "models/flux3/ends.h"

namespace braid {
namespace {

// The widest place is the MLP: the tokens and their norm, [q k v gate value], attended, the product
// of gate and value, minus keys and values, which count by themselves.
BlockCost blocks_of(const char* name, std::int64_t count, TokenScope scope, const Flux3Config& c) {
  const auto h = double(c.hidden()), m = double(c.mlp_hidden);
  const double joined = scope == TokenScope::kAll ? 2 * h : 0;  // runs, normed apart
  return {.name = name,
          .count = count,
          .scope = scope,
          .dense_flops = 2 * h * (4 * h + 3 * m),
          .all_reduces = 1,
          .peak_elements = {.whole = 2 * h, .shared = 2 * h + 3 * m},
          .widest_output = 3 * h + 2 * m,
          .kernels = scope == TokenScope::kAll ? 15 : 10,
          .layers = 3,
          // whole: a norm 2, a gated residual 3, the sum of attention and MLP 3; shared: q and k,
          // normed and rotated 4, SwiGLU in two passes
          .traffic_elements = {.whole = 8 * h + joined, .shared = 4 * h + 5 * m},
          .inputs = {.whole = h, .shared = h + m}};
}

}  // namespace

DenoiserShape flux3_shape(const Flux3Config& c) {
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width,
          .in_width = c.token_width,
          .out_width = c.token_width,
          .text_width = c.text_width,
          .shared_modulations = kFlux3Vectors * c.hidden(),
          .blocks = {blocks_of("image", c.num_mode, TokenScope::kNoise, c),
                     blocks_of("text", c.num_mode, TokenScope::kText, c),
                     blocks_of("reference", c.num_mode, TokenScope::kReferences, c),
                     blocks_of("single", c.num_single, TokenScope::kAll, c)}};
}

}  // namespace braid
