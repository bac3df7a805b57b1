// Deliberate mistakes, as made in parallel engines: they show that `verify` finds each.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "nn/attention.h"
#include "nn/predict.h"
#include "parallel/layout.h"
#include "weights/sharding.h"

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

// Each injects its fault and passes everything else through.
ShardingTable with_fault(ShardingTable shardings, std::optional<Fault> fault);
Attend with_fault(Attend attend, const Mesh& mesh, std::optional<Fault> fault);
DenoiserInput with_fault(DenoiserInput in, const Mesh& mesh, std::optional<Fault> fault);

}  // namespace braid
