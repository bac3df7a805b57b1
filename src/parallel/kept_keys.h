// Keys and values of tokens that are the same in every evaluation: one evaluation of these alone
// keeps them, and those after it attend to them beside their own.
//
// They are kept as the innermost attention has them: each rank its heads, after tokens were traded
// for them, of its tokens, which a ring passes on with those of the evaluation.
#pragma once

#include <vector>

#include "nn/attention.h"
#include "nn/predict.h"

namespace braid {

class KeptKeys {
 public:
  enum class Use { kNone, kKeep, kAttend };

  // Of the evaluations from now on. To keep forgets what was kept; so does to use none.
  void set_use(Use use);

  // What the blocks attend with. Their calls come in the same order in every evaluation; the kept
  // are of a batch of one, and all pictures attend to them.
  Attend around(Attend inner);
  // The part whose blocks do.
  PredictPart counted(PredictPart part);

  std::int64_t bytes() const;  // that are kept

 private:
  struct Block {
    Tensor k_1GLD, v_1GLD;
  };
  Use use_ = Use::kNone;
  std::vector<Block> blocks_;
  std::size_t next_ = 0;  // block of this evaluation
};

}  // namespace braid
