#include "pipeline/graphs/step_graph.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

// The tensors of an input; undefined where there is none. The names below are all members: an input
// with one more does not compile until it is thought of here.
std::vector<Tensor> tensors_of(const DenoiserInput& in) {
  const auto& [image, image_ids, text, text_ids, pooled, timestep, guidance, watch] = in;
  (void)watch;
  return {image, image_ids, text, text_ids, pooled, timestep, guidance.value_or(Tensor())};
}

DenoiserInput with_tensors(const std::vector<Tensor>& t) {
  DenoiserInput in{.image_BIC = t[0],
                   .image_ids_IA = t[1],
                   .text_BTC = t[2],
                   .text_ids_TA = t[3],
                   .pooled_BC = t[4],
                   .timestep_B = t[5]};
  if (t[6].defined()) in.guidance_B = t[6];
  return in;
}

bool have_same_shape(const Tensor& a, const Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  return a.sizes() == b.sizes() && a.scalar_type() == b.scalar_type() && a.device() == b.device();
}

bool have_same_shapes(const std::vector<DenoiserInput>& a, const std::vector<DenoiserInput>& b) {
  const auto are_same = [](const DenoiserInput& x, const DenoiserInput& y) {
    const auto xs = tensors_of(x), ys = tensors_of(y);
    return std::equal(xs.begin(), xs.end(), ys.begin(), have_same_shape);
  };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), are_same);
}

// Memory of its own with the same numbers.
DenoiserInput copy_of(const DenoiserInput& in) {
  auto tensors = tensors_of(in);
  for (auto& tensor : tensors)
    if (tensor.defined()) tensor = tensor.clone(at::MemoryFormat::Contiguous);
  return with_tensors(tensors);
}

void copy_to(const DenoiserInput& to, const DenoiserInput& from) {
  const auto targets = tensors_of(to), sources = tensors_of(from);
  for (std::size_t i = 0; i < targets.size(); ++i)
    if (targets[i].defined()) targets[i].copy_(sources[i]);
}

// Recording needs a stream of its own, and what lies about freed cannot be the graph's.
c10::Stream stream_to_record_on(at::Device device) {
  const c10::impl::VirtualGuardImpl guard(device.type());
  if (device.is_cpu()) return guard.getStream(device);  // of tests
  guard.synchronizeDevice(device.index());
  c10::getDeviceAllocator(device.type())->emptyCache();
  return guard.getStreamFromGlobalPool(device);
}

// The stream must not be left recording; why it could not is known.
void end_quietly(DeviceGraph& graph) {
  try {
    graph.end();
  } catch (const std::exception&) {
  }
}

}  // namespace

StepGraph::StepGraph(StepGraphOptions options, PredictAll inner)
    : options_(std::move(options)), inner_(std::move(inner)) {
  use_.why_not = options_.why_not;
}

StepGraph::~StepGraph() = default;

bool StepGraph::may_use(const std::vector<DenoiserInput>& inputs) const {
  return use_.why_not.empty() && use_.failure.empty() &&
         std::none_of(inputs.begin(), inputs.end(),
                      [](const DenoiserInput& in) { return bool(in.watch); });
}

std::vector<Tensor> StepGraph::operator()(const std::vector<DenoiserInput>& inputs) {
  if (!may_use(inputs)) return inner_(inputs);
  if (!have_same_shapes(inputs, inputs_)) {
    velocities_.clear();
    graph_.reset();
    inputs_ = inputs;
    return inner_(inputs);
  }
  if (!graph_) record();
  return graph_ ? replay(inputs) : inner_(inputs);
}

void StepGraph::record() {
  for (auto& in : inputs_) in = copy_of(in);
  auto graph = options_.make(options_.device);
  const c10::StreamGuard on(stream_to_record_on(options_.device));
  try {
    graph->begin();
    velocities_ = inner_(inputs_);
    graph->end();
    graph_ = std::move(graph);
  } catch (const std::exception& cause) {
    velocities_.clear();
    end_quietly(*graph);
    if (options_.on_failure == StepGraphOptions::OnFailure::kThrow) throw;
    use_.failure = text_of("a step could not be recorded as a graph: ", cause.what());
  }
}

// What the graph writes is written again by the next replay.
std::vector<Tensor> StepGraph::replay(const std::vector<DenoiserInput>& inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) copy_to(inputs_[i], inputs[i]);
  graph_->replay();
  ++use_.replays;
  std::vector<Tensor> velocities;
  for (const auto& velocity : velocities_) velocities.push_back(velocity.clone());
  return velocities;
}

}  // namespace braid
