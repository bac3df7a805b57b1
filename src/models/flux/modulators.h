// The adaLN layers for a run of FLUX.1's blocks: a third of a double block's parameters, a fifth of
// a single block's.
#pragma once

#include "models/flux/blocks.h"
#include "nn/block_list.h"

namespace braid {

class FluxModulators {
 public:
  FluxModulators(const Weights& w, BlockRun run, const FluxConfig& config);

  std::int64_t width() const;
  void add_to(ModulationsMade& made) const;

  // The modulations of one step for the next block of either kind.
  Tensor next_double(Modulations& step) const { return step.take(double_width()); }
  Tensor next_single(Modulations& step) const { return step.take(single_width()); }

 private:
  std::int64_t double_width() const { return 12 * hidden_; }
  std::int64_t single_width() const { return 3 * hidden_; }

  BlockList<FluxDoubleModulator> doubles_;
  BlockList<FluxSingleModulator> singles_;
  std::int64_t hidden_;
};

}  // namespace braid
