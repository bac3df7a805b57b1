// What a budget of memory means: how weights are kept so that a request stays below it.
#pragma once

#include "base/error.h"
#include "pipeline/planner/planner.h"

namespace braid {

// A way to keep the weights, and what it takes.
struct Fit {
  Memory memory;  // without a budget
  VaeTiling tiling = VaeTiling::kAuto;
  std::int64_t device_peak = 0;  // predicted: of the fullest device; on CPUs of the process
  std::int64_t host_peak = 0;    // of the process
  std::int64_t locked = 0;       // of the host's memory, for the copies of this process
  std::int64_t files = 0;        // of weights, in the folder of `memory.offload`
  double copy_seconds = 0;       // of the whole run, at 25 GB/s from the host and 2 from a disk
};

// Nothing that a budget allows fits it; what() says how much is missing.
class DoesNotFit : public InputError {
 public:
  // What alone would make it fit, and the device's peak then.
  enum class Remedy { kFiles, kEightBits, kEightBitsInFiles, kSmallPicture };
  struct Help {
    Remedy remedy;
    std::int64_t device_peak;
  };
  DoesNotFit(const std::string& sentence, std::vector<Help> help)
      : InputError(sentence), help_(std::move(help)) {}
  const std::vector<Help>& help() const { return help_; }

 private:
  std::vector<Help> help_;
};

std::string gigabytes_with_cents(std::int64_t bytes);  // "5.90 GB"

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
// they are allowed. What the budget says is fixed stays. The job is surveyed. Throws DoesNotFit
// unless the budget is implied.
Fit fit(const PlanJob& job, const FitPlace& place);

// The same for options and a request: `options.memory` and `request.vae_tiling` are replaced.
struct Fitted {
  PipelineOptions options;
  VaeTiling tiling;
  bool is_on_host;
  Fit fit;
};
Fitted fitted(const PipelineOptions& options, const Request& request);

}  // namespace braid
