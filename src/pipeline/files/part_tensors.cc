#include "pipeline/files/part_tensors.h"

#include <algorithm>

#include "weights/adapters/adapted_tensors.h"

namespace braid {
namespace {

std::vector<std::string> prefixes_of_others(const Family& family, const Part& part) {
  std::vector<std::string> prefixes;
  for (const auto& other : family.description().parts)
    if (other.folder != part.folder)
      prefixes.insert(prefixes.end(), other.adapters.prefixes.begin(),
                      other.adapters.prefixes.end());
  return prefixes;
}

AdaptedPart adapted_part(const Family& family, const Part& part, Warn warn) {
  return {.names = part.adapters,
          .shardings = part.sharding(SharedModulation::kYes),
          .others = prefixes_of_others(family, part),
          .warn = std::move(warn)};
}

}  // namespace

std::shared_ptr<TensorSource> tensors_of_part(const Part& part, const ModelFiles& files,
                                              const Warn& warn) {
  auto checkpoint = files.open(part.folder);
  if (warn && !checkpoint.note().empty()) warn(checkpoint.note());
  auto names = part.names(checkpoint);
  auto stored = stored_tensors(std::move(checkpoint), std::move(names));
  return part.widened ? widened_tensors(std::move(stored), *part.widened) : stored;
}

PartAdapters adapters_of_part(const Family& family, const Part& part,
                              std::vector<AppliedAdapter> adapters) {
  if (adapters.empty() || part.adapters.prefixes.empty()) return {};
  return {adapted_part(family, part, {}), std::move(adapters)};
}

bool adapts(const std::vector<AppliedAdapter>& adapters, const Family& family, const Part& part) {
  const auto others = prefixes_of_others(family, part);
  return std::any_of(adapters.begin(), adapters.end(), [&](const AppliedAdapter& adapter) {
    const auto& modules = adapter.file->modules();
    return std::any_of(modules.begin(), modules.end(), [&](const auto& entry) {
      return owns(part.adapters.prefixes, others, entry.first);
    });
  });
}

void check_replaceable(AdapterMode mode) {
  require(mode == AdapterMode::kUnmerged, "a request can bring its own adapters only where ",
          "adapters stay beside the weights, but here they are fused");
}

PartSource source_of_part(const Family& family, const Part& part, const ModelFiles* files,
                          const AdaptedModel& adapted) {
  auto tensors = files ? tensors_of_part(part, *files, adapted.warn) : synthetic_tensors();
  if (part.adapters.prefixes.empty()) return {.tensors = std::move(tensors)};
  const auto unmerged =
      std::make_shared<UnmergedAdapters>(adapted_part(family, part, adapted.warn), adapted.device);
  return {.tensors = adapted_tensors(std::move(tensors), adapted.adapters, adapted.mode, unmerged),
          .unmerged = unmerged};
}

}  // namespace braid
