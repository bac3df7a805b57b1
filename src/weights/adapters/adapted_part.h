// The part of a model that adapters change, and reports on adapters that do not fit it.
#pragma once

#include <functional>
#include <set>

#include "weights/adapters/adapter_file.h"
#include "weights/adapters/adapter_names.h"
#include "weights/adapters/change.h"

namespace braid {

struct AdaptedPart {
  AdapterNames names;
  ShardingTable shardings = {};                       // parts of fused layers
  std::vector<std::string> others = {};               // prefixes of the model's other parts
  std::function<void(const std::string&)> warn = {};  // told of tensors the part lacks, by loading
};

// The names of the tensors that the part has used, for each adapter.
using UsedTensors = std::vector<std::set<std::string>>;

// Adapters as a part of a model finds its tensors in them.
class PartAdapters {
 public:
  PartAdapters() = default;  // none
  PartAdapters(const AdaptedPart& part, std::vector<AppliedAdapter> adapters);

  const std::vector<AppliedAdapter>& adapters() const { return adapters_; }
  // What each adapter does to a tensor that the part asks for. Tables stay as they are. Throws
  // InputError naming the module if it does not fit the tensor.
  std::vector<AdapterChanges> changes_by_adapter(const TensorRequest& request) const;
  // The same of all adapters, one after another.
  AdapterChanges changes_of(const TensorRequest& request) const;

 private:
  ShardingTable shardings_;
  std::vector<AppliedAdapter> adapters_;
  std::vector<AdapterNames> names_;  // by adapter
};

AdapterChanges joined(const std::vector<AdapterChanges>& by_adapter);
void add_used(const std::vector<AdapterChanges>& by_adapter, UsedTensors& used);

// The tensors of a file that are named like the part's and that it has not used.
struct UnusedTensors {
  std::vector<std::string> names = {};
  bool has_others = false;  // unused ones of the model's other parts
};
UnusedTensors unused_in(const AdaptedPart& part, const AdapterFile& file,
                        const std::set<std::string>& used);

// Says that a tensor takes no product beside it: "c.weight of [4, 3], which is ...".
std::string only_fused(const TensorRequest& request);

// Tells `warn`, unless it is empty, of unused tensors. Throws InputError for an adapter none of
// whose tensors was used.
void report_unused(const AdaptedPart& part, const std::vector<AppliedAdapter>& adapters,
                   const UsedTensors& used, const std::function<void(const std::string&)>& warn);

}  // namespace braid
