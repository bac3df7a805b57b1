// Evaluations that are left out but for their first block (first-block cache, from ParaAttention):
// what the blocks behind it added in the last full evaluation is added again.
//
// Layouts stay around it: every rank of a picture takes the same decision, which the first stage of
// a layer split makes of all tokens, and later stages find behind the state that they are given.
#pragma once

#include "braid/cache.h"
#include "comm/mesh.h"
#include "nn/predict.h"

namespace braid {

// A rank's part of a denoiser in four, each as PredictPart says; undefined where other stages have
// it. The middle is all blocks here but the model's first.
struct CachedParts {
  PredictPart input, first, middle, output;
};

// The four without a cache.
PredictPart one_after_another(CachedParts parts);

class StepCache {
 public:
  // Throws InputError for options out of range.
  StepCache(const CacheOptions& options, const Mesh& mesh);

  // The parts as one, each picture of a batch decided for itself. Collective as they are.
  PredictPart over(CachedParts parts);

  // Pictures are begun: nothing is kept of those before.
  void begin_pictures() { items_.clear(); }
  // The evaluations of a step come in the same order in each: of the branches, and of each its
  // pictures. Branches at the end may stay away.
  void begin_step() { next_ = 0; }

  // Of picture i of this rank's first branch, the steps that were evaluated in full, from 0 on.
  std::vector<int> full_steps(std::size_t picture) const { return items_.at(picture).full; }

 private:
  struct Item {
    Tensor first_BSC, middle_BSC;  // what the blocks added
    double sum = 0;                // of changes since the last full evaluation
    int steps = 0, in_a_row = 0;   // seen, left out
    std::vector<int> full = {};
  };
  Tensor evaluate(const CachedParts& parts, const DenoiserInput& in, const Tensor& state);
  bool decide(Item& item, const Tensor& added_BSC) const;
  double change(const Tensor& before, const Tensor& now) const;
  double weighed(double change) const;

  CacheOptions options_;
  Group context_, tp_;
  bool is_first_, is_last_;  // stage
  std::vector<Item> items_;
  std::size_t next_ = 0;
};

}  // namespace braid
