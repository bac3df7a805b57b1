// The weights of a model's parts on one rank, with the adapters that are applied to them.
#pragma once

#include "pipeline/deployment/deployment.h"
#include "pipeline/files/part_tensors.h"

namespace braid {

class ModelWeights {
 public:
  // Stands around the tensors that a part is loaded from; in dry runs.
  using Around = std::function<std::shared_ptr<TensorSource>(std::shared_ptr<TensorSource>,
                                                             const LoadOptions&)>;
  // Those of the deployment's files or, without files, random ones. `warn` hears of tensors of
  // adapters that the model cannot use, and of choices between files.
  ModelWeights(const Deployment& deployment, at::Device device, const Warn& warn = {},
               Around around = {});
  ModelWeights(const ModelWeights&) = delete;
  ModelWeights& operator=(const ModelWeights&) = delete;

  // The weights of a part, split among load.tensor_parallel by its table, which `change` may alter.
  Weights of(const Part& part, const LoadOptions& load,
             const std::function<ShardingTable(ShardingTable)>& change = {});

  // Replaces all adapters. `warn` hears of tensors that the model cannot use, each time. Throws
  // InputError, changing nothing, unless they fit beside the weights.
  void adapt(const std::vector<AppliedAdapter>& adapters, const Warn& warn);
  const std::vector<AppliedAdapter>& adapters() const { return adapted_.adapters; }
  // How often the adapters were replaced.
  std::uint64_t epoch() const { return epoch_; }

 private:
  std::shared_ptr<const ModelFiles> files_;  // null: random weights
  std::shared_ptr<const Family> family_;
  SharedModulation modulation_;
  Around around_;
  AdaptedModel adapted_;  // with the current adapters
  std::vector<std::shared_ptr<UnmergedAdapters>> unmerged_;
  std::uint64_t epoch_ = 0;
};

}  // namespace braid
