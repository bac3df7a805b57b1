// The cost of a FLUX.1 transformer as computed by ops/reference.cc. C hidden width, M = 4 C.
#include "models/flux/model.h"

namespace braid {
namespace {

// Reads and writes per token in hidden widths, one operation after another. At the whole width:
// modulated norms 6 each, gated residuals 5, inputs and outputs of dense layers. Over a device's
// heads and share of the MLP: norms of q and k 4, their rotation 40 (in float32), GELU 8, attention
// 4, joining text and image 6 or attention and MLP 10, inputs and outputs 12.
constexpr Widths kMovedByDouble{26, 76}, kMovedBySingle{13, 80};

// Per token at the widest place: the residual and the result (2), plus the device's share. In a
// double block's MLP that is the hidden activations before and after GELU (8). Before a single
// block's last layer: [q k v | mlp] 7, rotated q 1, attended 1 and [attended | mlp] 5, minus v,
// which counts with the keys and values.
constexpr Widths kLiveInDouble{2, 8}, kLiveInSingle{2, 13};

Widths operator*(Widths w, double width) {
  return {.whole = w.whole * width, .shared = w.shared * width};
}

}  // namespace

DenoiserShape flux_shape(const FluxConfig& c) {
  const double h = double(c.hidden()), m = double(c.mlp_hidden());
  const double dense = 2 * (4 * h * h + 2 * h * m);  // multiply and add
  return {.hidden = c.hidden(),
          .num_heads = c.num_heads,
          .num_kv_heads = c.num_heads,
          .head_width = c.head_width,
          .in_width = c.out_channels,
          .out_width = c.out_channels,
          .beside_width = c.in_channels - c.out_channels,
          .text_width = c.text_width,
          .pooled_width = c.pooled_width,
          .blocks = {{.name = "double",
                      .count = c.num_double,
                      .dense_flops = dense,
                      .all_reduces = 2,  // shared by image and text
                      .live = kLiveInDouble * h,
                      .widest = m,
                      .moved = kMovedByDouble * h,
                      .has_sides = true},
                     {.name = "single",
                      .count = c.num_single,
                      .dense_flops = dense,
                      .all_reduces = 1,
                      .live = kLiveInSingle * h,
                      .widest = 3 * h + m,
                      .moved = kMovedBySingle * h}}};
}

}  // namespace braid
