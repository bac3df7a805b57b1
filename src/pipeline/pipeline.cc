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
  return state_->engine.generate(request, hooks);
}

std::string version() { return BRAID_VERSION; }

}  // namespace braid
