#include "models/zimage/config.h"

namespace braid {
namespace {

// The widest place is the MLP: the tokens before and after attention, what is added to them and its
// norm, [gate | value] and their product, minus two widths that count as keys and values.
BlockCost blocks_of(const char* name, std::int64_t count, TokenScope scope, const ZImageConfig& c) {
  const auto h = double(c.hidden), m = double(c.mlp_hidden());
  return {.name = name,
          .count = count,
          .scope = scope,
          .use = scope == TokenScope::kText ? BlockUse::kOncePerPicture : BlockUse::kInEveryStep,
          .dense_flops = 2 * h * (4 * h + 3 * m),
          .all_reduces = 2,
          .peak_elements = {.whole = 4 * h, .shared = 3 * m - 2 * h},
          .widest_output = 2 * m,
          .kernels = 32,  // four of them for the modulations alone
          .layers = 4,
          // whole: four norms 12 each, as LlamaRMSNorm is spelled with ATen, in float32; two scales
          // 2, two gated residuals 3; shared: q and k, normed and rotated 4, SwiGLU in two passes
          .traffic_elements = {.whole = 58 * h, .shared = 4 * h + 5 * m},
          .inputs = {.whole = 2 * h, .shared = h + m}};
}

}  // namespace

DenoiserShape zimage_shape(const ZImageConfig& c) {
  return {.hidden = c.hidden,
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width(),
          .in_width = c.token_width(),
          .out_width = c.token_width(),
          .text_width = c.text_width,
          .pooled_width = 0,
          .run_multiple = kZImageRun,
          .blocks = {blocks_of("noise refiner blocks", c.num_refiners, TokenScope::kImage, c),
                     blocks_of("text refiner blocks", c.num_refiners, TokenScope::kText, c),
                     blocks_of("blocks", c.num_layers, TokenScope::kAll, c)}};
}

}  // namespace braid
