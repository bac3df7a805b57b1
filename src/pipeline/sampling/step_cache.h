// Skips all but the first block of an evaluation (first-block cache, from ParaAttention): what the
// later blocks added in the last full evaluation is added again.
//
// The cache sits inside the layouts: every rank of a picture takes the same decision. The first
// stage of pipeline parallelism makes it from all tokens; later stages read it from a row after
// their state, which is all that travels from stage to stage.
#pragma once

#include <map>

#include "braid/cache.h"
#include "comm/mesh.h"
#include "nn/predict.h"

namespace braid {

// A rank's part of a denoiser in four, each as PredictPart says; undefined if other stages hold it.
// The middle is every block here except the model's first.
struct CachedParts {
  PredictPart input, first, middle, output;
};

// The four parts without a cache.
PredictPart one_after_another(CachedParts parts);

// Evaluates the pictures of a batch alone, as each decides for itself what it leaves out; what is
// kept of a picture, its prefix for example, is then kept for it alone.
PredictPart picture_by_picture(PredictPart part);

class StepCache {
 public:
  // Throws InputError for options out of range.
  StepCache(const CacheOptions& options, const Mesh& mesh);

  // The parts as one; each picture of a batch is decided separately. Collective as they are.
  PredictPart over(CachedParts parts);

  // Frees what is kept of all pictures; new ones begin.
  void forget_pictures() { items_.clear(); }

  bool has_seen(int picture) const;
  // The steps in which a picture of this rank's first branch was evaluated in full, counted from 0.
  const std::vector<int>& full_steps(int picture) const;

 private:
  struct Item {
    Tensor first_BSC, middle_BSC;  // what the blocks added
    double sum = 0;                // of changes since the last full evaluation
    int in_a_row = 0;              // skipped
    std::vector<int> full = {};
  };
  Tensor evaluate(const CachedParts& parts, const DenoiserInput& in, const Tensor& state);
  bool decide(Item& item, const Tensor& added_BSC) const;
  double change(const Tensor& before, const Tensor& now) const;
  double weighed(double change) const;

  CacheOptions options_;
  Group context_, tp_;
  bool is_first_, is_last_;                    // stage
  std::map<std::pair<int, int>, Item> items_;  // by picture and branch
};

}  // namespace braid
