#include "pipeline/sampling/latent_colors.h"

#include <ATen/ATen.h>

#include "pipeline/sampling/noise.h"

namespace braid {
namespace {

constexpr std::int64_t kSide = 16, kPictures = 4;

// Noise in blocks of 2, 4, 8 and 16, summed to unit variance: like pictures' latents, it is strong
// in low frequencies. White noise gave a third of the accuracy.
Tensor smooth_noise(const at::Generator& generator, std::int64_t channels) {
  auto sum = at::zeros({1, channels, kSide, kSide}, at::kFloat);
  for (const std::int64_t block : {2, 4, 8, 16}) {
    const auto few = at::randn({1, channels, kSide / block, kSide / block}, generator, at::kFloat);
    sum += few.repeat_interleave(block, 2).repeat_interleave(block, 3);
  }
  return sum / 2;
}

// [B Z h w] -> [B*h*w, Z + 1]
Tensor rows_of(const Tensor& latents) {
  const auto rows = latents.to(at::kCPU, at::kFloat).permute({0, 2, 3, 1}).flatten(0, 2);
  return at::cat({rows, at::ones({rows.size(0), 1}, at::kFloat)}, 1);
}

}  // namespace

LatentColors::LatentColors(std::int64_t channels,
                           const std::function<Tensor(const Tensor& latents)>& decode) {
  const auto generator = generator_of(0);
  std::vector<Tensor> latents, colors;
  for (std::int64_t i = 0; i < kPictures; ++i) {
    const auto noise = smooth_noise(generator, channels);
    latents.push_back(rows_of(noise));
    const auto picture = decode(noise).to(at::kCPU, at::kFloat);
    const auto means = at::adaptive_avg_pool2d(picture, {kSide, kSide});
    colors.push_back(means.permute({0, 2, 3, 1}).flatten(0, 2));
  }
  colors_ = std::get<0>(at::linalg_lstsq(at::cat(latents), at::cat(colors)));
}

Tensor LatentColors::operator()(const Tensor& latents) const {
  const auto colors = at::matmul(rows_of(latents), colors_);
  return colors.unflatten(0, {latents.size(0), latents.size(2), latents.size(3)})
      .permute({0, 3, 1, 2});
}

}  // namespace braid
