#include "weights/adapters/adapted_part.h"

#include <algorithm>

#include "base/error.h"
#include "weights/sources/expected.h"

namespace braid {
namespace {

void report(const AdaptedPart& part, const AdapterFile& file, const std::set<std::string>& used,
            const std::function<void(const std::string&)>& warn) {
  if (warn && !used.empty() && !file.note().empty()) warn(file.note());
  auto [left, is_for_others] = unused_in(part, file, used);
  if (left.empty()) return;
  const auto looks = likeness_clause(part.names, file);
  require(!used.empty() || is_for_others, file.source(),
          " changes nothing of this model: ", "it has no layer that any of the ", left.size(),
          " tensors names, '", left.front(), "' is the first", looks);
  if (!warn) return;
  const auto count = left.size();
  left.resize(std::min<std::size_t>(count, 3));
  warn(text_of(file.source(), " holds ", count, count == 1 ? " tensor" : " tensors",
               " that the model has no use for: ", list_of(left), count > 3 ? ", ..." : "", looks));
}

}  // namespace

PartAdapters::PartAdapters(const AdaptedPart& part, std::vector<AppliedAdapter> adapters)
    : shardings_(part.shardings), adapters_(std::move(adapters)) {
  for (const auto& adapter : adapters_) names_.push_back(names_in(*adapter.file, part.names));
}

std::vector<AdapterChanges> PartAdapters::changes_by_adapter(const TensorRequest& request) const {
  std::vector<AdapterChanges> changes(adapters_.size());
  if (request.kind == TensorRequest::Kind::kTable) return changes;
  for (std::size_t i = 0; i < adapters_.size(); ++i)
    changes[i] = AdapterSearch{adapters_[i], names_[i], shardings_}.changes_of(request);
  return changes;
}

AdapterChanges PartAdapters::changes_of(const TensorRequest& request) const {
  return joined(changes_by_adapter(request));
}

AdapterChanges joined(const std::vector<AdapterChanges>& by_adapter) {
  AdapterChanges all;
  for (const auto& [changes, stored] : by_adapter) {
    all.changes.insert(all.changes.end(), changes.begin(), changes.end());
    all.stored.insert(all.stored.end(), stored.begin(), stored.end());
  }
  return all;
}

void add_used(const std::vector<AdapterChanges>& by_adapter, UsedTensors& used) {
  used.resize(by_adapter.size());
  for (std::size_t i = 0; i < by_adapter.size(); ++i)
    for (const auto& stored : by_adapter[i].stored) used[i].insert(stored.entry.name);
}

UnusedTensors unused_in(const AdaptedPart& part, const AdapterFile& file,
                        const std::set<std::string>& used) {
  UnusedTensors unused;
  for (const auto& [name, module] : file.modules()) {
    std::vector<std::string> left;
    for (const auto& [role, stored] : module.tensors)
      if (!used.contains(stored.entry.name)) left.push_back(stored.entry.name);
    if (left.empty()) continue;
    if (owns(part.names.prefixes, part.others, name))
      unused.names.insert(unused.names.end(), left.begin(), left.end());
    else
      unused.has_others = true;
  }
  return unused;
}

std::string only_fused(const TensorRequest& request) {
  return text_of(request.path(), " of ", at::IntArrayRef(request.shape),
                 ", which is none of the matrices that products stay beside");
}

void report_unused(const AdaptedPart& part, const std::vector<AppliedAdapter>& adapters,
                   const UsedTensors& used, const std::function<void(const std::string&)>& warn) {
  for (std::size_t i = 0; i < adapters.size(); ++i) report(part, *adapters[i].file, used[i], warn);
}

}  // namespace braid
