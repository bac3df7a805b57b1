// From settled settings to pictures: embed the prompts, then denoise and decode batch by batch.
#pragma once

#include "pipeline/engine.h"
#include "pipeline/pictures/prepared.h"

namespace braid {

// Who listens to a run; each may be missing.
struct Observers {
  Recording* recording = nullptr;
  PeakMeter* peaks = nullptr;
};

// What a request brings along, checked.
struct BroughtAlong {
  std::optional<Latents> latents = {};  // take the place of drawn noise
  PreparedPictures pictures = {};
};

struct Drawn {
  std::vector<Picture> pictures;
  TrafficByAxis step;  // of the first step: what this rank gave the others
  // By picture, with a cache: the steps that were evaluated in full, from 0 on.
  std::vector<std::vector<int>> full_steps;
};

// Collective over the ranks of the model's layout; the first rank returns the pictures, calls the
// hooks and fills the recording; all ranks tell the meter which phase begins.
Drawn generate_pictures(const Model& model, const Settings& settings, const BroughtAlong& brought,
                        const Hooks& hooks, const Observers& observers);

}  // namespace braid
