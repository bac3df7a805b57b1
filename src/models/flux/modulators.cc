#include "models/flux/modulators.h"

namespace braid {

FluxModulators::FluxModulators(const Weights& w, BlockRun run, const FluxConfig& c)
    : doubles_(w.once() / "double_blocks", run.of_kind(0, c.num_double), c),
      singles_(w.once() / "single_blocks", run.of_kind(c.num_double, c.num_single), c),
      hidden_(c.hidden()) {}

std::int64_t FluxModulators::width() const {
  return doubles_.size() * double_width() + singles_.size() * single_width();
}

void FluxModulators::add_to(ModulationsMade& made) const {
  doubles_.for_each([&](std::int64_t, const FluxDoubleModulator& layers) { layers.add_to(made); });
  singles_.for_each([&](std::int64_t, const FluxSingleModulator& layer) { layer.add_to(made); });
}

}  // namespace braid
