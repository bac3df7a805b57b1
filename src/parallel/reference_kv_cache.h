// Keys and values of tokens that are the same in every evaluation. One evaluation of these tokens
// alone keeps them; later ones attend to them beside their own.
//
// They are kept in the layout of the innermost attention: each rank's heads (after trading tokens
// for heads) of its own tokens. A ring passes them on with those of the evaluation.
// for them, of its tokens, which a ring passes on with those of the evaluation.
#pragma once

#include <vector>

#include "nn/attention.h"
#include "nn/predict.h"

namespace braid {

class ReferenceKvCache {
 public:
  enum class Use { kNone, kKeep, kAttend };

  // Applies from the next evaluation on. Both kKeep and kNone forget what was kept.
  void set_use(Use use);

  // Wraps the attention of all blocks, which call it in the same order in every evaluation. The
  // kept keys have a batch of one; all pictures attend to them.
  Attend around(Attend inner);
  // Wraps the part that contains these blocks.
  PredictPart counted(PredictPart part);

  std::int64_t bytes() const;  // of the kept keys and values

 private:
  struct Block {
    Tensor k_1GLD, v_1GLD;
  };
  Use use_ = Use::kNone;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;  // block of this evaluation
};

}  // namespace braid
