// Turns settled settings into pictures, round by round: embed its prompts, denoise, decode.
#pragma once

#include "pipeline/engine/run_facts.h"
#include "pipeline/loaded/model.h"
#include "pipeline/pictures/prepared.h"

namespace braid {

struct Observers {
  RunOptions run = {};
  PeakMeter* peaks = nullptr;
  bool step_ends = false;  // whether the first rank's hooks have `step_end`; known to all ranks
  // Called when the last picture is drawn, before its callback: what asks to stop from then on
  // comes too late.
  std::function<void()> before_last_picture = [] {};
};

// Checked inputs that a request brings besides its settings.
struct BroughtAlong {
  std::optional<Latents> latents = {};  // used instead of drawn noise
  PreparedPictures pictures = {};
};

// Collective over the ranks of the model's layout. The first rank returns the pictures, records and
// calls the hooks. Each rank returns what it knows of the run, and tells the meter which phase
// begins.
Generated generate_pictures(const Model& model, const Settings& settings,
                            const BroughtAlong& brought, const Hooks& hooks,
                            const Observers& observers);

}  // namespace braid
