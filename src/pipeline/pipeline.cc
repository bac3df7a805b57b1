// The public interface over the engine.
#include "braid/braid.h"
#include "pipeline/engine.h"

namespace braid {

class Pipeline::State {
 public:
  State(const PipelineOptions& options, const Hooks& hooks) : engine(options, hooks) {}

  Engine engine;
};

Pipeline::Pipeline(const PipelineOptions& options, const Hooks& hooks)
    : state_(std::make_unique<State>(options, hooks)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&&) noexcept = default;
Pipeline::~Pipeline() = default;

std::vector<Picture> Pipeline::generate(const Request& request, const Hooks& hooks) const {
  const auto& engine = state_->engine;
  return engine.generate(engine.deployment().tiled(request), hooks).pictures;
}

Request Pipeline::complete(const Request& request, const Hooks& hooks) const {
  return state_->engine.complete(request, hooks);
}

ModelInfo Pipeline::info() const { return state_->engine.info(); }

std::string version() { return BRAID_VERSION; }

}  // namespace braid
