#include "pipeline/loaded/model_weights.h"

#include "base/error.h"

namespace braid {

ModelWeights::ModelWeights(const Deployment& d, at::Device device, const Warn& warn, Around around)
    : files_(d.files),
      family_(d.family),
      modulation_(d.options.layout.modulation),
      around_(std::move(around)),
      adapted_{.adapters = files_ ? files_->adapters : open_adapters(d.options.adapters),
               .mode = d.options.adapter_mode,
               .warn = warn,
               .device = device} {}

Weights ModelWeights::of(const Part& part, const LoadOptions& load,
                         const std::function<ShardingTable(ShardingTable)>& change) {
  auto source = source_of_part(*family_, part, files_.get(), adapted_);
  if (source.unmerged) unmerged_.push_back(source.unmerged);
  if (around_) source.tensors = around_(std::move(source.tensors), load);
  ShardingTable shardings;
  if (part.sharding) shardings = part.sharding(modulation_);
  if (change) shardings = change(std::move(shardings));
  return {std::move(source.tensors), load, std::move(shardings)};
}

void ModelWeights::adapt(const std::vector<AppliedAdapter>& adapters, const Warn& warn) {
  if (adapters == adapted_.adapters) {
    for (const auto& part : unmerged_) part->warn_again(adapters, warn);
    return;
  }
  check_replaceable(adapted_.mode);
  for (const auto& part : unmerged_) part->prepare(adapters, warn);
  for (const auto& part : unmerged_) part->switch_to(adapters);
  adapted_.adapters = adapters;
  ++epoch_;
}

}  // namespace braid
