#include "pipeline/graphs/step_graph.h"

#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "base/error.h"
#include "pipeline/devices/cached_memory.h"
#include "pipeline/graphs/recording_turn.h"

namespace braid {
namespace {

struct Placed {
  std::string_view name;
  std::int64_t batch_dim;  // distinguishes tokens from their positions
  Tensor x;
};

std::vector<Placed> tensors_of(const DenoiserInput& in) {
  std::vector<Placed> tensors;
  visit_tensors(in, [&](const Tensor& x, const DimRoles& dims) {
    tensors.push_back({dims.name, dims.batch, x});
  });
  return tensors;
}

bool have_same_shape(const Placed& a, const Placed& b) {
  return a.name == b.name && a.batch_dim == b.batch_dim && a.x.sizes() == b.x.sizes() &&
         a.x.scalar_type() == b.x.scalar_type() && a.x.device() == b.x.device();
}

bool have_same_nets(const DenoiserInput& a, const DenoiserInput& b) {
  return std::equal(a.controls.begin(), a.controls.end(), b.controls.begin(), b.controls.end(),
                    [](const auto& x, const auto& y) { return x.net == y.net; });
}

// Tensors of one shape may be in another list: residuals of double or of single blocks.
bool have_same_lists(const DenoiserInput& a, const DenoiserInput& b) {
  return have_same_nets(a, b) && a.references.size() == b.references.size() &&
         a.residuals.doubles.size() == b.residuals.doubles.size() &&
         a.residuals.singles.size() == b.residuals.singles.size();
}

bool have_same_shapes(const std::vector<DenoiserInput>& a, const std::vector<DenoiserInput>& b) {
  const auto are_same = [](const DenoiserInput& x, const DenoiserInput& y) {
    const auto xs = tensors_of(x), ys = tensors_of(y);
    return have_same_lists(x, y) &&
           std::equal(xs.begin(), xs.end(), ys.begin(), ys.end(), have_same_shape);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_same);
}

// The same values in memory of their own.
DenoiserInput copy_of(DenoiserInput in) {
  visit_tensors(in, [](Tensor& x, const DimRoles&) { x = x.clone(at::MemoryFormat::Contiguous); });
  return in;
}

void copy_to(const DenoiserInput& to, const DenoiserInput& from) {
  const auto targets = tensors_of(to), sources = tensors_of(from);
  for (std::size_t i = 0; i < targets.size(); ++i) targets[i].x.copy_(sources[i].x);
}

}  // namespace

std::string why_not_recorded(Graphs graphs, const Memory& memory, bool is_on_host) {
  if (graphs == Graphs::kOff) return "graphs are off";
  if (is_on_host) return "a CPU records no graphs";
  return memory.offload.transformer == OffloadMode::kNone ? "" : "weights are copied during a step";
}

c10::Stream stream_to_record_on(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  return device.is_cpu() ? guard.getStream(device) : guard.getStreamFromGlobalPool(device);
}

StepGraph::StepGraph(StepGraphOptions options, PredictAll inner)
    : options_(std::move(options)), inner_(std::move(inner)) {
  use_.why_not = options_.why_not;
}

StepGraph::~StepGraph() = default;

bool StepGraph::fits(const std::vector<DenoiserInput>& inputs) const {
  const auto choose_the_same = [&](const DenoiserInput& a, const DenoiserInput& b) {
    return options_.choice(a.step) == options_.choice(b.step);
  };
  return !is_stale() && have_same_shapes(inputs, inputs_) &&
         std::equal(inputs.begin(), inputs.end(), inputs_.begin(), choose_the_same);
}

bool StepGraph::may_use(const std::vector<DenoiserInput>& inputs) const {
  return use_.why_not.empty() && use_.failure.empty() &&
         std::none_of(inputs.begin(), inputs.end(),
                      [](const DenoiserInput& in) { return bool(in.watch); });
}

// Ranks with others must all do the same, and only the first one's thread may change.
bool StepGraph::may_record_here() const {
  return evaluated_on_ == std::this_thread::get_id() ||
         options_.on_failure == StepGraphOptions::OnFailure::kThrow;
}

std::vector<Tensor> StepGraph::operator()(const std::vector<DenoiserInput>& inputs) {
  if (!may_use(inputs)) return inner_(inputs);
  if (!fits(inputs) || (!graph_ && !may_record_here())) {
    forget();
    auto velocities = inner_(inputs);  // may throw halfway
    inputs_ = inputs;
    evaluated_on_ = std::this_thread::get_id();
    return velocities;
  }
  if (!graph_) record();
  return graph_ ? replay(inputs) : inner_(inputs);
}

void StepGraph::forget() {
  velocities_.clear();
  graph_.reset();
  inputs_.clear();
  epoch_ = options_.epoch();
}

// Always on the same stream.
// Memory cached by the allocator cannot become the graph's; one rank gives it back for all that
// record together.
void StepGraph::record() {
  for (auto& in : inputs_) in = copy_of(in);
  if (!stream_) stream_ = options_.stream(options_.device);
  const RecordingTurn turn(options_.pipeline ? options_.pipeline : this,
                           [&] { give_back_cached_memory(options_.device); });
  auto graph = options_.make(options_.device);
  const c10::StreamGuard on(*stream_);
  // A recording must end on the stream on which it began.
  const auto give_up = [&] {
    velocities_.clear();  // they lie in the graph's memory
    graph.reset();
  };
  try {
    graph->begin();
    velocities_ = inner_(inputs_);
    graph->end();
    graph_ = std::move(graph);
  } catch (const Cancelled&) {  // the run ends; this says nothing about recording
    give_up();
    throw;
  } catch (const std::exception& cause) {
    give_up();
    if (options_.on_failure == StepGraphOptions::OnFailure::kThrow) throw;
    use_.failure = text_of("a step could not be recorded as a graph: ", cause.what());
  }
}

// The next replay overwrites the graph's outputs.
std::vector<Tensor> StepGraph::replay(const std::vector<DenoiserInput>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) copy_to(inputs_[i], inputs[i]);
  graph_->replay();
  ++use_.replays;
  std::vector<Tensor> velocities;
  for (const auto& velocity : velocities_) velocities.push_back(velocity.clone());
  return velocities;
}

}  // namespace braid
