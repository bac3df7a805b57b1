// Keys and values of tokens that are the same in every evaluation. One evaluation of these tokens
// alone keeps them; later ones attend to them beside their own.
//
// They are kept in the layout of the innermost attention: each rank's heads (after trading tokens
// for heads) of its own tokens. A ring passes them on with those of the evaluation.
#pragma once

#include <map>
#include <vector>

#include "nn/attention.h"
#include "nn/predict.h"

namespace braid {

class ReferenceKvCache {
 public:
  enum class Use { kNone, kKeep, kAttend };
  // Whose they are. kReferences: one set, with a batch of one, behind the keys of every picture and
  // branch. kPrefix: those of each branch's pictures, before their own.
  enum class Of { kReferences, kPrefix };

  // Applies from the next evaluation on. Both kKeep and kNone forget what was kept.
  void set_use(Use use, Of of = Of::kReferences);

  // Whose keys and values an evaluation keeps or attends to: equal where it is the same ones.
  std::pair<int, int> whose(const StepInfo& step) const;

  // Wraps the attention of all blocks, which call it in the same order in every evaluation.
  Attend around(Attend inner);
  // Wraps the part that contains these blocks.
  PredictPart counted(PredictPart part);

  std::int64_t bytes() const;  // of the kept keys and values

 private:
  struct Block {
    Tensor k_BGLD, v_BGLD;
  };
  AttentionInput with_kept(AttentionInput in, const Block& kept) const;

  Use use_ = Use::kNone;
  Of of_ = Of::kReferences;
  std::map<std::pair<int, int>, std::vector<Block>> blocks_;  // by branch and first picture
  std::vector<Block>* here_ = nullptr;                        // of this evaluation
  std::size_t next_ = 0;                                      // block of this evaluation
};

}  // namespace braid
