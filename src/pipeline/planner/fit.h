// What a budget of memory means: how weights are kept so that a request stays below it.
#pragma once

#include "pipeline/planner/planner.h"

namespace braid {

// A way to keep the weights, and what it takes.
struct Fit {
  Memory memory;  // without a budget
  VaeTiling tiling = VaeTiling::kAuto;
  std::int64_t device_peak = 0;  // predicted: of the fullest device; on CPUs of the process
  std::int64_t host_peak = 0;    // of the process
  double copy_seconds = 0;       // of the whole run, at 25 GB/s from the host and 2 from a disk
};

// Where ranks compute, and which of them are in one process.
struct FitPlace {
  Degrees grid;
  std::vector<std::string> devices;  // by rank; "cpu", "cuda:0"
  bool are_threads = true;           // of one process; else each rank is a process
};

// The fastest that fits job.memory.budget: all weights resident; pages of the text encoders, which
// cost a copy a prompt; of the autoencoder; some blocks of the transformer, as few as possible;
// layers of it; files, where job.memory.offload has a folder and the host needs it. What changes
// the picture comes in only where nothing else fits: tiles of the autoencoder, then 8 bits where
// they are allowed. What the budget says is fixed stays. The job is surveyed. Throws InputError
// (unless the budget is implied) that says how much is missing and what would help.
Fit fit(const PlanJob& job, const FitPlace& place);

// The same for options and a request: `options.memory` and `request.vae_tiling` are replaced.
struct Fitted {
  PipelineOptions options;
  VaeTiling tiling;
  std::string sentence;  // what was chosen, for people
  Fit fit;
};
Fitted fitted(const PipelineOptions& options, const Request& request);

// "--offload block --resident 12, predicted peak 5.90 GB a device, 24.31 GB of the host"
std::string to_string(const Fit& fit, const PlanJob& job);

}  // namespace braid
