// The rough pictures that a caller sees while steps are taken.
#pragma once

#include <chrono>
#include <optional>

#include "pipeline/model.h"
#include "pipeline/sampling/denoise.h"

namespace braid {

class Previews {
 public:
  // For the pictures of one rank from number `first` on; none where `hooks` wants none.
  Previews(const Model& model, const Hooks& hooks, PictureSize size, int first)
      : model_(model), hooks_(hooks), size_(size), first_(first) {}

  // Shows where a step leads: its latents without what is left of the noise.
  void show(const StepTaken& taken);

 private:
  using Clock = std::chrono::steady_clock;

  bool is_due() const;

  const Model& model_;
  const Hooks& hooks_;
  PictureSize size_;
  int first_;
  std::optional<Clock::time_point> shown_;
};

}  // namespace braid
