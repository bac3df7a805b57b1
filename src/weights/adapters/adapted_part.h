// The part of a model that adapters change, and what is said of those that do not fit it.
#pragma once

#include <functional>
#include <set>

#include "weights/adapters/adapter_file.h"
#include "weights/adapters/adapter_names.h"

namespace braid {

struct AdaptedPart {
  AdapterNames names;
  ShardingTable shardings = {};                       // whose parts are the parts of fused layers
  std::vector<std::string> others = {};               // prefixes of the model's other parts
  std::function<void(const std::string&)> warn = {};  // hears of tensors that the part lacks
};

// Of each adapter the names of the tensors that the part has used.
using UsedTensors = std::vector<std::set<std::string>>;

// Warns of tensors that nobody used. Throws InputError for an adapter of which nothing was.
void report_unused(const AdaptedPart& part, const std::vector<AppliedAdapter>& adapters,
                   const UsedTensors& used);

}  // namespace braid
