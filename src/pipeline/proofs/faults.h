// Deliberate mistakes, as made in parallel engines: they show that `verify` finds each.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <vector>

#include "pipeline/loaded/denoiser.h"

namespace braid {

enum class Fault {
  kContiguousSlice,  // tp: [attention | mlp] is cut as if it were one part
  kZeroTimestep,     // all but pp: every rank but the first computes at timestep 0
  kSkipReduce,       // tp: partial outputs of one row of row-parallel layers are not summed
  kDropLse,          // ring: partial attentions are averaged instead of weighted
  kStaleKv,          // ring: the local keys and values are attended twice, others never
  kRankNoise,        // all but pp: a rank starts from other latents
};

const std::vector<std::pair<std::string, Fault>>& fault_names();
// Throws InputError listing the names unless `name` is one.
Fault fault_named(const std::string& name);

// Throws InputError naming the fault unless it can change something in such a layout.
void check_fault(Fault fault, const Degrees& degrees);

// Injects the fault on this rank of `mesh` and passes everything else through. `layers` are those
// of the denoisers. Sets `is_injected`, which must outlive the result, once there was something to
// change: not every model has it.
Interposed with_fault(const Mesh& mesh, Fault fault, const std::vector<std::string>& layers,
                      std::atomic<bool>& is_injected);

}  // namespace braid
