#include "pipeline/engine/previews.h"

#include <ATen/ATen.h>

#include "parallel/layout.h"

namespace braid {
namespace {

// A preview has no alpha.
Tensor over_white(const Tensor& unit_BCHW) {
  constexpr std::int64_t kColours = 3;
  if (unit_BCHW.size(1) == kColours) return unit_BCHW;
  const auto alpha = unit_BCHW.narrow(1, kColours, 1);
  return unit_BCHW.narrow(1, 0, kColours) * alpha + (1 - alpha);
}

}  // namespace

bool Previews::is_due() const {
  const auto interval = std::chrono::duration<double>(hooks_.preview_interval);
  return hooks_.preview && (!shown_ || Clock::now() - *shown_ >= interval);
}

// Gathers all pictures of the round, if the first rank wants to see them now; else undefined.
Tensor Previews::clean_latents(const StepTaken& taken) const {
  const auto& dp = model_.mesh().dp;
  dp.await();  // a step takes longer with more pictures
  auto requested = at::full({1}, is_due() ? 1 : 0, at::kLong);
  dp.broadcast_(requested, 0);
  if (requested.item<std::int64_t>() == 0) return {};
  const auto latents = taken.latents_BNC.to(at::kFloat);
  return gather_pictures(model_.mesh(), latents - taken.sigma * taken.velocity_BNC.to(at::kFloat));
}

void Previews::show(const StepTaken& taken) {
  const auto clean = clean_latents(taken);
  if (!clean.defined() || !hooks_.preview) return;
  const auto unit = (model_.autoencoder().colors_of(clean, size_) * 0.5 + 0.5).clamp(0, 1);
  const auto bytes =
      (over_white(unit) * 255).round().to(at::kByte).permute({0, 2, 3, 1}).contiguous();
  for (std::int64_t i = 0; i < bytes.size(0); ++i) {
    const auto one = bytes[i];
    const auto* const data = one.const_data_ptr<std::uint8_t>();
    hooks_.preview({.picture = first_ + int(i),
                    .step = taken.done,
                    .width = int(one.size(1)),
                    .height = int(one.size(0)),
                    .rgb = {data, data + one.numel()}});
  }
  shown_ = Clock::now();
}

}  // namespace braid
