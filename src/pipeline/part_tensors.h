// Where the tensors of one part of a model come from.
#pragma once

#include "pipeline/families/family.h"
#include "weights/adapters/beside_weights.h"

namespace braid {

// The tensors of the part's files, with what it has beyond them.
std::shared_ptr<TensorSource> tensors_of_part(const Part& part, const ModelFiles& files);

struct AdaptedModel {
  std::vector<AppliedAdapter> adapters = {};
  AdapterMode mode = AdapterMode::kAuto;
  Warn warn = {};  // hears of tensors of theirs that the model has no use for
  at::Device device = at::kCPU;
};

struct PartSource {
  std::shared_ptr<TensorSource> tensors;
  std::shared_ptr<BesideWeights> beside = {};  // none: no adapter changes such a part
};

// The model's files or, where there are none, random numbers; with the adapters.
PartSource source_of_part(const Family& family, const Part& part, const ModelFiles* files,
                          const AdaptedModel& adapted);

// Whether an adapter has tensors for the part.
bool adapts(const std::vector<AppliedAdapter>& adapters, const Family& family, const Part& part);

}  // namespace braid
