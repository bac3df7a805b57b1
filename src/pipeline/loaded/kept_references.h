// Tokens that are the same in every step: references that a model sees once, or the prefix of a
// sequence causal by blocks. They are evaluated alone before the first step. In all later
// evaluations each block attends to the keys and values kept from it.
#pragma once

#include <memory>

#include "nn/denoiser_part.h"
#include "parallel/reference_kv_cache.h"
#include "parallel/regions.h"

namespace braid {

// An input's text and references, without its noise and its watch; and the noise without them.
DenoiserInput prefix_of(DenoiserInput in);
DenoiserInput behind_prefix(DenoiserInput in);

class KeptReferences {
 public:
  // Wraps a part whose blocks attend to what is kept; `load` builds it, given where to keep it.
  DenoiserPart attending(const std::function<DenoiserPart(ReferenceKvCache*)>& load);
  // `predict` evaluates the whole model, `branches` at once.
  void set_model(PredictAll predict, int branches);

  // Collective over the ranks that work on the same pictures. Every rank of a branch computes the
  // same: references do not depend on text.
  void keep(const DenoiserInput& references);
  // Keeps the prefix of each branch of a step separately. Collective as keep().
  void keep_prefixes(const std::vector<DenoiserInput>& branches);
  void forget();

  std::uint64_t changes() const { return changes_; }  // so far, to what is attended to
  // As ReferenceKvCache::whose(), of all parts.
  std::pair<int, int> whose(const StepInfo& step) const { return parts_.front()->whose(step); }

 private:
  void set_use(ReferenceKvCache::Use use, ReferenceKvCache::Of of);

  std::vector<std::unique_ptr<ReferenceKvCache>> parts_;
  PredictAll predict_;
  int branches_ = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace braid
