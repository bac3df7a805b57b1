#include "models/krea2/text_fusion.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

std::vector<Krea2TextBlock> load_text_blocks(const Weights& w, std::int64_t count,
                                             const Krea2Config& c) {
  std::vector<Krea2TextBlock> blocks;
  for (std::int64_t i = 0; i < count; ++i) blocks.emplace_back(w / i, c);
  return blocks;
}

}  // namespace

Krea2TextFusion::Krea2TextFusion(const Weights& w, const Krea2Config& c)
    : tap_blocks_(load_text_blocks(w / "layerwise_blocks", c.num_tap_blocks, c)),
      mixer_1K_((w / "projector").tensor("weight", {1, c.num_taps})),
      text_blocks_(load_text_blocks(w / "refiner_blocks", c.num_text_blocks, c)),
      norm_W_(load_krea2_norm(w / "txt_in" / "norm", c.text.hidden)),
      in_(w / "txt_in" / "linear_1", {.in = c.text.hidden, .out = c.image.hidden}),
      out_(w / "txt_in" / "linear_2", {.in = c.image.hidden, .out = c.image.hidden}),
      norm_eps_(c.norm_eps) {}

// Each token's taps attend to each other wherever the token is, so not through `attend`.
Tensor Krea2TextFusion::operator()(const Tensor& taps_BTC, const Attend& attend,
                                   const Watch& watch) const {
  const auto watched = [&](const std::string& where, const Tensor& x) {
    if (watch) watch(where, x);
  };
  const auto batch = taps_BTC.size(0), tokens = taps_BTC.size(1), taps = mixer_1K_.size(1);
  auto x_NKW = taps_BTC.unflatten(-1, {taps, -1}).flatten(0, 1).contiguous();
  for (std::size_t i = 0; i < tap_blocks_.size(); ++i) {
    x_NKW = tap_blocks_[i](x_NKW, ops::attention);
    watched("layerwise_blocks." + std::to_string(i), x_NKW.view({batch, tokens, -1}));
  }
  auto x = at::linear(x_NKW.transpose(1, 2), mixer_1K_).squeeze(-1).view({batch, tokens, -1});
  watched("projector", x);
  for (std::size_t i = 0; i < text_blocks_.size(); ++i) {
    x = text_blocks_[i](x, attend);
    watched("refiner_blocks." + std::to_string(i), x);
  }
  x = out_(in_.gelu(ops::zero_centred_rms_norm(x, norm_W_, norm_eps_)));
  watched("txt_in", x);
  return x;
}

}  // namespace braid
