// An evaluation of the denoiser as one graph of the device: its thousands of kernels are started by
// one call, and the device never waits for the host. Models and layouts do not know.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <string>

#include "parallel/regions.h"
#include "pipeline/graphs/device_graph.h"

namespace braid {

// What became of a wish for graphs.
struct GraphUse {
  std::int64_t replays = 0;  // evaluations that a graph made
  std::string why_not = {};  // empty where graphs may be used
  std::string failure = {};  // where one could not be recorded
};

struct StepGraphOptions {
  at::Device device;
  std::string why_not = {};  // why no graph may be used; empty: one may
  // A graph that was recorded in another epoch is of no use.
  std::function<std::uint64_t()> epoch = [] { return std::uint64_t(0); };
  // When an evaluation cannot be recorded: alone one goes on without, but other ranks may have
  // recorded theirs.
  enum class OnFailure { kGoOn, kThrow } on_failure = OnFailure::kThrow;
  std::function<std::unique_ptr<DeviceGraph>(at::Device)> make = make_device_graph;
};

// Evaluates inputs of shapes that it has not just seen as they are, which also makes whatever is
// made on first use; records the evaluation when the same shapes come again, and from then on
// copies the inputs to where the graph reads them. Keeps the graph of the latest shapes only.
//
// `inner` must not wait for the device and must do the same for the same shapes. What goes between
// ranks is recorded too, so that all ranks must record, which they do, seeing the same shapes.
class StepGraph {
 public:
  StepGraph(StepGraphOptions options, PredictAll inner);
  ~StepGraph();

  // Inputs with a watch are evaluated as they are.
  std::vector<Tensor> operator()(const std::vector<DenoiserInput>& inputs);
  const GraphUse& use() const { return use_; }

 private:
  bool may_use(const std::vector<DenoiserInput>& inputs) const;
  void forget();
  void record();
  std::vector<Tensor> replay(const std::vector<DenoiserInput>& inputs);

  StepGraphOptions options_;
  PredictAll inner_;
  std::optional<c10::Stream> stream_;  // that evaluations are recorded on
  std::vector<DenoiserInput> inputs_;  // of the latest shapes; once recorded, what the graph reads
  std::vector<Tensor> velocities_;     // what the graph writes
  std::unique_ptr<DeviceGraph> graph_;
  std::uint64_t epoch_ = 0;  // of inputs and graph
  GraphUse use_;
};

}  // namespace braid
