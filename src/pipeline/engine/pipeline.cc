// The public interface over the engine.
#include "braid/braid.h"
#include "pipeline/engine/engine.h"

namespace braid {

class Pipeline::State {
 public:
  State(const PipelineOptions& options, const Hooks& hooks) : engine(options, hooks) {}

  bool is_here() const { return engine.is_here(); }

  Engine engine;
};

Pipeline::Pipeline(const PipelineOptions& options, const Hooks& hooks)
    : state_(std::make_unique<State>(options, hooks)) {}
Pipeline::Pipeline(Pipeline&&) noexcept = default;
Pipeline& Pipeline::operator=(Pipeline&& other) noexcept {
  replace_where_made(state_, other.state_);
  return *this;
}
Pipeline::~Pipeline() { end_where_made(state_); }

std::vector<Picture> Pipeline::generate(const Request& request, const Hooks& hooks) const {
  const auto& engine = held(state_, "pipeline").engine;
  return engine.generate(engine.deployment().tiled(request), hooks).pictures;
}

Request Pipeline::complete(const Request& request, const Hooks& hooks) const {
  return held(state_, "pipeline").engine.complete(request, hooks);
}

ModelInfo Pipeline::info() const { return held(state_, "pipeline").engine.info(); }

std::string version() { return BRAID_VERSION; }

bool is_launched() { return read_launch().has_value(); }

}  // namespace braid
