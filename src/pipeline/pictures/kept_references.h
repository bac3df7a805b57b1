// References that a model sees once: in one evaluation of their own, before the first step. In all
// that follow every block attends to what they were there.
#pragma once

#include <memory>

#include "nn/denoiser_part.h"
#include "parallel/kept_keys.h"
#include "parallel/regions.h"

namespace braid {

class KeptReferences {
 public:
  // A part of the model whose blocks attend to what is kept, out of `load`, which is given where.
  DenoiserPart attending(const std::function<DenoiserPart(KeptKeys*)>& load);
  // Evaluates the whole model, `branches` at once.
  void set_model(PredictAll predict, int branches);

  // Collective over the ranks that work on the same pictures. Every rank of a branch computes the
  // same: references know no text.
  void keep(const DenoiserInput& references);
  void forget();

  std::uint64_t changes() const { return changes_; }  // so far, of what is attended to

 private:
  void set_use(KeptKeys::Use use);

  std::vector<std::unique_ptr<KeptKeys>> parts_;
  PredictAll predict_;
  int branches_ = 1;
  std::uint64_t changes_ = 0;
};

}  // namespace braid
