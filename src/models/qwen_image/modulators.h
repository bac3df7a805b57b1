// The adaLN layers for a run of Qwen-Image's blocks: a third of the parameters.
//
// Shape letters: S steps, E width of the conditioning vectors, C hidden width.
#pragma once

#include "models/qwen_image/config.h"
#include "nn/block_list.h"
#include "nn/joint_block.h"
#include "nn/modulations.h"

namespace braid {

// Those of one block. Where references have timestep 0, the image's layer is applied to that, too.
class QwenImageModulator {
 public:
  QwenImageModulator(const Weights& w, const QwenImageConfig& config);
  void add_to(ModulationsMade& made) const;

 private:
  Linear image_, text_;
  ReferenceTime reference_time_;
};

class QwenImageModulators {
 public:
  QwenImageModulators(const Weights& w, BlockRun run, const QwenImageConfig& config);

  std::int64_t width() const { return blocks_.size() * width_of_block(); }
  void add_to(ModulationsMade& made) const;

  // The modulations of one step for the next block, whose first `num_noise` image tokens are the
  // noise's.
  JointModulations next(Modulations& step, std::int64_t num_noise) const;

 private:
  std::int64_t width_of_block() const { return num_vectors_ * hidden_; }

  BlockList<QwenImageModulator> blocks_;
  std::int64_t hidden_, num_vectors_;
};

}  // namespace braid
