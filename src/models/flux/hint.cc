#include "models/flux/hint.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr std::int64_t kWidth = 16;  // the reference's, whatever a config says

std::vector<Conv2d> load_layers(const Weights& w) {
  std::vector<Conv2d> layers;
  for (std::int64_t i = 0; i < 2 * PictureHint::kHalvings; ++i)
    layers.emplace_back(w / i, ConvShape{.in = kWidth, .out = kWidth, .stride = 1 + i % 2});
  return layers;
}

}  // namespace

PictureHint::PictureHint(const Weights& w, std::int64_t channels)
    : in_(w / "conv_in", {.in = 3, .out = kWidth}),
      layers_(load_layers(w / "blocks")),
      out_(w / "conv_out", {.in = kWidth, .out = channels}) {}

Tensor PictureHint::operator()(const Tensor& picture_13HW) const {
  auto x = at::silu(in_(picture_13HW));
  for (const auto& layer : layers_) x = at::silu(layer(x));
  return at::pixel_unshuffle(out_(x), 2).flatten(2).transpose(1, 2);
}

}  // namespace braid
