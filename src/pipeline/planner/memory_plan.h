// Turns a memory budget into a way to keep weights, so that a request stays below it.
#pragma once

#include "base/error.h"
#include "pipeline/planner/planner.h"

namespace braid {

// A way to keep the weights, and its cost.
struct MemoryPlan {
  Memory memory;  // with the budget cleared
  VaeTiling tiling = VaeTiling::kAuto;
  std::int64_t device_peak = 0;  // predicted: of the fullest device; on CPUs, the process's
  std::int64_t host_peak = 0;    // of the process
  std::int64_t locked = 0;       // host memory locked for this process's copies
  std::int64_t files = 0;        // of weights, in the folder of `memory.offload`
  double copy_seconds = 0;       // for the whole run, at 25 GB/s from the host and 2 from a disk
};

// Nothing that the budget allows fits; what() says how much is missing.
class DoesNotFit : public InputError {
 public:
  // A single change that would make it fit, and the device's peak then.
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

// Where ranks compute, and which of them share a process.
struct RankPlaces {
  Degrees grid;
  std::vector<std::string> devices;  // by rank; "cpu", "cuda:0"
  bool are_threads = true;           // of one process; otherwise each rank is a process
};

// The fastest choice that fits job.memory.budget, tried in this order: all weights resident; the
// same without a recorded step while pictures are decoded; pages
// of the text encoders, which cost one copy per prompt; of the autoencoder; some blocks of the
// transformer, as few as possible; its layers; files, if job.memory.offload has a folder and the
// host needs it. Choices that change the picture come only if nothing else fits: tiles of the
// autoencoder, then 8 bits where allowed. What is stated stays. With an implied budget nothing that
// changes the picture is chosen and, if nothing fits, what exceeds it by least. Otherwise throws
// DoesNotFit. The job is surveyed.
MemoryPlan plan_memory(const PlanJob& job, const RankPlaces& place);

// Stands for a folder that is yet to be made, wherever files of weights are only planned.
inline constexpr auto* kFolderToMake = "pages";

// The same; if nothing fits, with files in kFolderToMake, unless the job has a folder of its own. A
// refusal names what is lacking with them.
MemoryPlan plan_memory_or_files(const PlanJob& job, const RankPlaces& place);

}  // namespace braid
