#include "pipeline/graphs/part_graphs.h"

#include <ATen/ATen.h>

namespace braid {

// A part and the memory in which its graph finds the state.
class PartGraphs::Recorded {
 public:
  Recorded(StepGraphOptions options, PredictPart part)
      : part_(std::move(part)), graph_(with_epoch(std::move(options)), [this](const auto& inputs) {
          return std::vector<Tensor>{part_(inputs.front(), state_)};
        }) {}
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  Tensor operator()(const DenoiserInput& in, const Tensor& state) {
    if (!graph_.use().why_not.empty()) return part_(in, state);
    place(state);
    return apart(graph_({in}).front());
  }
  const GraphUse& use() const { return graph_.use(); }
  void forget() { graph_.forget(); }

 private:
  // A graph that reads a state elsewhere is stale.
  StepGraphOptions with_epoch(StepGraphOptions options) const {
    options.epoch = [this, of_ranks = std::move(options.epoch)] {
      return of_ranks() + num_places_;
    };
    return options;
  }
  void place(const Tensor& state) {
    if (state.defined() && state_.defined() && state.sizes() == state_.sizes()) {
      state_.copy_(state);
      return;
    }
    if (!state.defined() && !state_.defined()) return;
    state_ = state.defined() ? state.clone(at::MemoryFormat::Contiguous) : Tensor();
    ++num_places_;
  }
  // A part without blocks returns its state, which the next call overwrites.
  Tensor apart(const Tensor& made) const {
    return state_.defined() && made.is_alias_of(state_) ? made.clone() : made;
  }

  PredictPart part_;
  Tensor state_;
  std::uint64_t num_places_ = 0;
  StepGraph graph_;
};

PartGraphs::PartGraphs(StepGraphOptions options) : options_(std::move(options)) {
  const auto stream = std::make_shared<std::optional<c10::Stream>>();
  options_.stream = [stream, choose = options_.stream](at::Device device) {
    if (!*stream) *stream = choose(device);
    return **stream;
  };
}

CachedParts PartGraphs::over(CachedParts parts) {
  for (auto* const part : {&parts.input, &parts.first, &parts.middle, &parts.output}) {
    if (!*part) continue;
    parts_.push_back(std::make_shared<Recorded>(options_, std::move(*part)));
    *part = [recorded = parts_.back()](const DenoiserInput& in, const Tensor& state) {
      return (*recorded)(in, state);
    };
  }
  return parts;
}

void PartGraphs::forget() const {
  for (const auto& part : parts_) part->forget();
}

GraphUse PartGraphs::use() const {
  GraphUse all{.why_not = options_.why_not};
  for (const auto& part : parts_) {
    all.replays += part->use().replays;
    if (all.failure.empty()) all.failure = part->use().failure;
  }
  return all;
}

}  // namespace braid
