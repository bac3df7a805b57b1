#include "weights/adapters/adapted_part.h"

#include <algorithm>

#include "base/error.h"
#include "weights/sources/expected.h"

namespace braid {
namespace {

void report(const AdaptedPart& part, const AdapterFile& file, const std::set<std::string>& used) {
  std::vector<std::string> left;
  bool is_for_others = false;
  for (const auto& [name, module] : file.modules()) {
    const bool is_ours = owns(part.names.prefixes, part.others, name);
    is_for_others |= !is_ours;
    if (!is_ours) continue;
    for (const auto& [role, stored] : module.tensors)
      if (!used.contains(stored.entry.name)) left.push_back(stored.entry.name);
  }
  if (left.empty()) return;
  require(!used.empty() || is_for_others, file.source(),
          " changes nothing of this model: ", "it has no layer that any of the ", left.size(),
          " tensors names, '", left.front(), "' is the first");
  if (!part.warn) return;
  const auto count = left.size();
  left.resize(std::min<std::size_t>(count, 3));
  part.warn(text_of(file.source(), " holds ", count, count == 1 ? " tensor" : " tensors",
                    " that the model has no use for: ", list_of(left), count > 3 ? ", ..." : ""));
}

}  // namespace

void report_unused(const AdaptedPart& part, const std::vector<AppliedAdapter>& adapters,
                   const UsedTensors& used) {
  for (std::size_t i = 0; i < adapters.size(); ++i) report(part, *adapters[i].file, used[i]);
}

}  // namespace braid
