// From settled settings to pictures: embed the prompts, then denoise and decode batch by batch.
#pragma once

#include "pipeline/engine.h"
#include "pipeline/pictures/prepared.h"

namespace braid {

// Observers of a run; each may be absent.
struct Observers {
  Recording* recording = nullptr;
  TrafficByAxis* step = nullptr;  // what this rank gave the others in the first step
  PeakMeter* peaks = nullptr;
  bool step_ends = false;  // whether the first rank's hooks have `step_end`; known to all ranks
};

// Checked inputs that a request brings besides its settings.
struct BroughtAlong {
  std::optional<Latents> latents = {};  // used instead of drawn noise
  PreparedPictures pictures = {};
};

struct Drawn {
  std::vector<Picture> pictures;
  // By picture, with a cache: the steps that were evaluated in full, from 0 on.
  std::vector<std::vector<int>> full_steps;
};

// Collective over the ranks of the model's layout. The first rank returns the pictures, calls the
// hooks and fills the recording. All ranks tell the meter which phase begins.
Drawn generate_pictures(const Model& model, const Settings& settings, const BroughtAlong& brought,
                        const Hooks& hooks, const Observers& observers);

}  // namespace braid
