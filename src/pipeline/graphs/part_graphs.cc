#include "pipeline/graphs/part_graphs.h"

#include <ATen/ATen.h>

#include <map>
#include <set>

namespace braid {

// A part for one kind of inputs, and the memory in which its graph finds the state.
class PartGraphs::Recorded {
 public:
  Recorded(const StepGraphOptions& options, const PredictPart& part)
      : graph_(options, [this, part](const std::vector<DenoiserInput>& inputs) {
          return std::vector<Tensor>{part(inputs.front(), state_)};
        }) {}
  Recorded(const Recorded&) = delete;
  Recorded& operator=(const Recorded&) = delete;

  bool fits(const DenoiserInput& in, const Tensor& state) const {
    const bool is_same_state = state.defined() == state_.defined() &&
                               (!state.defined() || (state.sizes() == state_.sizes() &&
                                                     state.scalar_type() == state_.scalar_type()));
    return is_same_state && graph_.fits({in});
  }
  bool is_stale() const { return graph_.is_stale(); }

  // The first inputs, or those that fit.
  Tensor operator()(const DenoiserInput& in, const Tensor& state) {
    if (state.defined() && state_.defined())
      state_.copy_(state);
    else if (state.defined())
      state_ = state.clone(at::MemoryFormat::Contiguous);
    return apart(graph_({in}).front());
  }
  const GraphUse& use() const { return graph_.use(); }

 private:
  // A part without blocks returns its state, which the next call overwrites.
  Tensor apart(const Tensor& made) const {
    return state_.defined() && made.is_alias_of(state_) ? made.clone() : made;
  }

  Tensor state_;
  StepGraph graph_;
};

// A part with its graphs. Each branch of each picture uses one, which ends with its last user.
class PartGraphs::Recordings {
 public:
  Recordings(StepGraphOptions options, PredictPart part)
      : options_(std::move(options)), part_(std::move(part)), use_{.why_not = options_.why_not} {}

  Tensor operator()(const DenoiserInput& in, const Tensor& state) {
    if (in.watch || !use_.why_not.empty() || !use_.failure.empty()) return part_(in, state);
    const auto recorded = recorded_for(in, state);
    if (!recorded) return part_(in, state);
    const auto before = recorded->use().replays;
    auto made = (*recorded)(in, state);
    use_.replays += recorded->use().replays - before;
    use_.failure = recorded->use().failure;
    if (!use_.failure.empty()) users_.clear();
    return made;
  }
  const GraphUse& use() const { return use_; }
  void forget() { users_.clear(); }
  void end_pictures() {
    for (auto& [who, user] : users_) user.has_ended = true;
  }

 private:
  struct User {
    std::shared_ptr<Recorded> recorded;
    bool has_ended = false;
  };

  // Null where all graphs are in use.
  std::shared_ptr<Recorded> recorded_for(const DenoiserInput& in, const Tensor& state) {
    const std::pair who(in.step.branch, in.step.picture);
    auto mine = found(in, state);
    if (!mine) {
      users_.erase(who);
      std::erase_if(users_, [](const auto& user) {
        return user.second.has_ended || user.second.recorded->is_stale();
      });
      if (num_graphs() < kMostGraphs) mine = std::make_shared<Recorded>(options_, part_);
    }
    if (mine) users_[who] = {.recorded = mine};
    return mine;
  }
  std::shared_ptr<Recorded> found(const DenoiserInput& in, const Tensor& state) const {
    for (const auto& [who, user] : users_)
      if (user.recorded->fits(in, state)) return user.recorded;
    return nullptr;
  }
  std::size_t num_graphs() const {
    std::set<const Recorded*> all;
    for (const auto& [who, user] : users_) all.insert(user.recorded.get());
    return all.size();
  }

  StepGraphOptions options_;
  PredictPart part_;
  std::map<std::pair<int, int>, User> users_;  // by branch and picture
  GraphUse use_;
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
    parts_.push_back(std::make_shared<Recordings>(options_, std::move(*part)));
    *part = [recordings = parts_.back()](const DenoiserInput& in, const Tensor& state) {
      return (*recordings)(in, state);
    };
  }
  return parts;
}

void PartGraphs::end_pictures() const {
  for (const auto& part : parts_) part->end_pictures();
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
