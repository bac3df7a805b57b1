// Where the tensors of one part of a model come from.
#pragma once

#include "pipeline/families/family.h"
#include "weights/adapters/unmerged_adapters.h"

namespace braid {

// The tensors of the part's files, plus those the part has beyond them. `warn` hears of a choice
// between files.
std::shared_ptr<TensorSource> tensors_of_part(const Part& part, const ModelFiles& files,
                                              const Warn& warn = {});

struct AdaptedModel {
  std::vector<AppliedAdapter> adapters = {};
  AdapterMode mode = AdapterMode::kAuto;
  Warn warn = {};  // reports adapter tensors the model cannot use, and choices of files
  at::Device device = at::kCPU;
};

// Throws InputError unless requests may replace the adapters.
void check_replaceable(AdapterMode mode);

struct PartSource {
  std::shared_ptr<TensorSource> tensors;
  std::shared_ptr<UnmergedAdapters> unmerged = {};  // null: no adapter changes such a part
};

// The model's files or, without files, random numbers; with the adapters applied.
PartSource source_of_part(const Family& family, const Part& part, const ModelFiles* files,
                          const AdaptedModel& adapted);

// The adapters as a part finds its tensors in them; none if no adapter changes such a part.
PartAdapters adapters_of_part(const Family& family, const Part& part,
                              std::vector<AppliedAdapter> adapters);

// Whether an adapter has tensors for the part.
bool adapts(const std::vector<AppliedAdapter>& adapters, const Family& family, const Part& part);

}  // namespace braid
