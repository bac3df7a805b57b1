// Deliberate mistakes, as made in parallel engines: they show that `verify` finds each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "pipeline/denoisers/denoiser.h"

namespace braid {

enum class Fault {
  kContiguousSlice,  // tp: [attention | mlp] is cut as if it were one part
  kZeroTimestep,     // every rank but the first computes at timestep 0
  kSkipReduce,       // tp: a row-parallel layer's partial outputs are not summed
  kDropLse,          // ring: partial attentions are averaged instead of weighted
  kStaleKv,          // ring: the local keys and values are attended twice, others never
  kRankNoise,        // context: a rank starts from other latents
};

const std::vector<std::pair<std::string, Fault>>& fault_names();
// Throws InputError listing the names unless `name` is one.
Fault fault_named(const std::string& name);

// Injects the fault on this rank of `mesh` and passes everything else through.
Interposed with_fault(const Mesh& mesh, Fault fault);

}  // namespace braid
