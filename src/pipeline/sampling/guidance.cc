#include "pipeline/sampling/guidance.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

std::vector<std::int64_t> all_but_the_batch(const Tensor& x) {
  std::vector<std::int64_t> dims;
  for (std::int64_t d = 1; d < x.dim(); ++d) dims.push_back(d);
  return dims;
}

// Shortens `guided`, per picture, to at most `cap` times the length of `positive`.
Tensor cap_norm(const Tensor& guided, const Tensor& positive, double cap) {
  const auto length = [&](const Tensor& x) {
    return at::linalg_vector_norm(x, 2, all_but_the_batch(x), /*keepdim=*/true);
  };
  const auto shrink = cap * length(positive) / length(guided);
  return guided * shrink.nan_to_num(1).clamp_max(1);
}

// Gives `guided`, per picture, the standard deviation of `positive`, blended by `amount`: Lin et
// al., 2024, section 3.4.
Tensor rescale(const Tensor& guided, const Tensor& positive, double amount) {
  const auto spread = [&](const Tensor& x) {
    return x.std(all_but_the_batch(x), /*unbiased=*/true, /*keepdim=*/true);
  };
  const auto same_spread = guided * (spread(positive) / spread(guided)).nan_to_num(1);
  return amount * same_spread + (1 - amount) * guided;
}

// Gives `guided`, per latent, the length of `positive`, in the model's dtype.
Tensor keep_lengths(const Tensor& guided, const Tensor& positive, std::int64_t channels) {
  constexpr double kShortest = 1e-6;
  const auto latents = [&](const Tensor& x) { return x.unflatten(-1, {channels, -1}); };
  const auto length = [&](const Tensor& x) {
    return at::linalg_vector_norm(latents(x), 2, {-2}, /*keepdim=*/true);
  };
  const auto scale = length(positive) / length(guided).clamp_min(kShortest);
  return (latents(guided) * scale).flatten(-2);
}

}  // namespace

Tensor guide(const std::vector<Tensor>& velocities, const TrueGuidance& guidance, double done) {
  const auto& positive = velocities.front();
  if (velocities.size() == 1 || done > guidance.until) return positive;
  const auto& negative = velocities[1];
  const auto& from = guidance.from == GuidedFrom::kNegative ? negative : positive;
  auto guided = from + guidance.scale * (positive - negative);
  if (guidance.kept_channels > 0) guided = keep_lengths(guided, positive, guidance.kept_channels);
  if (guidance.norm_cap == 0 && guidance.rescale == 0) return guided;
  auto wide = guided.to(at::kFloat);
  const auto want = positive.to(at::kFloat);
  if (guidance.norm_cap > 0) wide = cap_norm(wide, want, guidance.norm_cap);
  if (guidance.rescale > 0) wide = rescale(wide, want, guidance.rescale);
  return wide.to(guided.scalar_type());
}

}  // namespace braid
