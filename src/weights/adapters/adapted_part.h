// The part of a model that adapters change, and reports on adapters that do not fit it.
#pragma once

#include <functional>
#include <set>

#include "weights/adapters/adapter_file.h"
#include "weights/adapters/adapter_names.h"

namespace braid {

struct AdaptedPart {
  AdapterNames names;
  ShardingTable shardings = {};                       // parts of fused layers
  std::vector<std::string> others = {};               // prefixes of the model's other parts
  std::function<void(const std::string&)> warn = {};  // told of tensors the part lacks
};

// For each adapter, the names of the tensors the part has used.
using UsedTensors = std::vector<std::set<std::string>>;

// Warns of unused tensors. Throws InputError for an adapter none of whose tensors was used.
void report_unused(const AdaptedPart& part, const std::vector<AppliedAdapter>& adapters,
                   const UsedTensors& used);

}  // namespace braid
