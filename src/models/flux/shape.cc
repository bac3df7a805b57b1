// The cost of a FLUX.1 transformer. C hidden width, M = 4 C.
#include "models/flux/model.h"

namespace braid {
namespace {

// Reads and writes per token in hidden widths. At the whole width: a modulated norm 2, a gated
// residual with a norm 4 and one without 3. Over a device's heads and share of the MLP: q and k,
// normed and rotated 4; in a single block whose layers do not apply GELU, attention and MLP joined
// behind it 10.
constexpr Widths kTrafficOfDouble{9, 4}, kTrafficOfSingle{5, 4}, kJoined{0, 10};

// What the widest place holds for each token, minus two widths that count as keys and values. In a
// double block's MLP, where these are gone: the residual before and after attention and the norm
// (3), and the hidden activations before and after GELU (8), if no product applies it itself. In a
// single block's last layer: the residual and the result (2), [q k v | mlp] 7, attended 1 and
// [attended | mlp] 5.
constexpr Widths kPeakInDouble{3, 6}, kPeakInSingle{2, 11};

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
          .extra_width = c.in_channels - c.out_channels,
          .text_width = c.text_width,
          .pooled_width = c.pooled_width,
          .blocks = {{.name = "double",
                      .count = c.num_double,
                      .dense_flops = dense,
                      .all_reduces = 2,  // shared by image and text
                      .peak_elements = kPeakInDouble * h,
                      .widest_output = m,
                      .kernels = 16,
                      .layers = 8,
                      .traffic_elements = kTrafficOfDouble * h,
                      .inputs = {.whole = 2 * h, .shared = h + m},
                      .coded = {.whole = 2 * h, .shared = m},  // all but what attention returns
                      .coded_layers = 6,
                      .gated_sums = 2,
                      .gated_kernels = 2,       // behind the MLP; behind attention they are norms
                      .gated_elements = 5 * h,  // there 2 of 4 widths
                      .activated = {.whole = 0, .shared = 2 * m},
                      .activating_kernels = 2,
                      .has_sides = true},
                     {.name = "single",
                      .count = c.num_single,
                      .dense_flops = dense,
                      .all_reduces = 1,
                      .peak_elements = kPeakInSingle * h,
                      .widest_output = 3 * h + m,
                      .kernels = 8,
                      .layers = 2,
                      .traffic_elements = kTrafficOfSingle * h,
                      .inputs = {.whole = h, .shared = h + m},
                      .coded = {.whole = h, .shared = h + m},
                      .coded_layers = 2,
                      .gated_sums = 1,
                      .gated_kernels = 1,
                      .gated_elements = 3 * h,
                      .activated = kJoined * h,
                      .activating_kernels = -1}}};  // one joins what two products make apart
}

}  // namespace braid
