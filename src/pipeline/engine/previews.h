// The rough pictures shown to a caller while steps run.
#pragma once

#include <chrono>
#include <optional>

#include "pipeline/engine/denoise.h"
#include "pipeline/loaded/model.h"

namespace braid {

class Previews {
 public:
  // Shows a round's pictures, numbered from `first`, and nothing if the first rank's `hooks` want
  // none.
  Previews(const Model& model, const Hooks& hooks, PictureSize size, int first)
      : model_(model), hooks_(hooks), size_(size), first_(first) {}

  // Shows where a step leads: its latents with the remaining noise removed. Collective over the
  // data-parallel ranks; those without pictures bring latents and a velocity of none.
  void show(const StepTaken& taken);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due() const;
  Tensor clean_latents(const StepTaken& taken) const;

  const Model& model_;
  const Hooks& hooks_;
  PictureSize size_;
  int first_;
  std::optional<Clock::time_point> shown_;
};

}  // namespace braid
