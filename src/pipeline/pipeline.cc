// The public interface over the engine.
#include "braid/braid.h"
#include "pipeline/engine.h"
#include "pipeline/planner/fit.h"

namespace braid {

class Pipeline::State {
 public:
  State(const PipelineOptions& options, const Hooks& hooks) : engine(fit_to(options), hooks) {}

  // With a budget, fit()'s choice replaces `kAuto`.
  VaeTiling tiling = VaeTiling::kAuto;
  Engine engine;

 private:
  PipelineOptions fit_to(const PipelineOptions& options) {
    if (!options.memory.budget.is_set()) return options;
    const auto chosen = fitted(options, {});
    tiling = chosen.tiling;
    return chosen.options;
  }
};

Pipeline::Pipeline(const PipelineOptions& options, const Hooks& hooks)
    : state_(std::make_unique<State>(options, hooks)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

std::vector<Picture> Pipeline::generate(const Request& request, const Hooks& hooks) const {
  auto fitted = request;
  if (fitted.vae_tiling == VaeTiling::kAuto) fitted.vae_tiling = state_->tiling;
  return state_->engine.generate(fitted, hooks);
}

Request Pipeline::complete(const Request& request, const Hooks& hooks) const {
  return state_->engine.complete(request, hooks);
}

ModelInfo Pipeline::info() const { return state_->engine.info(); }

std::string version() { return BRAID_VERSION; }

}  // namespace braid
