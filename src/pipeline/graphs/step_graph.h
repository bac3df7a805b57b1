// An evaluation of the denoiser as one device graph: a single call starts its thousands of kernels,
// and the device never waits for the host. Models and layouts are unaware of it.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <string>
#include <thread>

#include "braid/memory.h"
#include "braid/numbers.h"
#include "parallel/regions.h"
#include "pipeline/graphs/device_graph.h"

namespace braid {

// What became of a request for graphs.
struct GraphUse {
  std::int64_t replays = 0;  // evaluations, or with a cache their parts, run by replaying a graph
  std::string why_not = {};  // empty if graphs may be used
  std::string failure = {};  // if one could not be recorded
};

// Why a model with these settings records no step on any GPU; empty: one that can record does.
std::string why_not_recorded(Graphs graphs, const Memory& memory, bool is_on_host);

// A stream to record on: not the default one; on the CPU, in tests, the only one.
c10::Stream stream_to_record_on(at::Device device);

struct StepGraphOptions {
  at::Device device;
  std::string why_not = {};  // why no graph may be used; empty: one may
  // A graph recorded in another epoch is stale.
  std::function<std::uint64_t()> epoch = [] { return std::uint64_t(0); };
  // What an evaluation chooses on the host by its StepInfo, such as keys that are kept per branch.
  // A replay repeats the choice, so a graph serves only evaluations that choose the same.
  std::function<std::pair<int, int>(const StepInfo&)> choice = [](const StepInfo&) {
    return std::pair(0, 0);
  };
  // What to do when an evaluation cannot be recorded: a single rank goes on without a graph, but
  // other ranks may have recorded theirs.
  enum class OnFailure { kGoOn, kThrow } on_failure = OnFailure::kThrow;
  // Whose ranks record together (RecordingTurn); null: nobody else does.
  const void* pipeline = nullptr;
  std::function<std::unique_ptr<DeviceGraph>(at::Device)> make = make_device_graph;
  // Called once. LibTorch keeps a workspace for matrix products per stream used.
  std::function<c10::Stream(at::Device)> stream = stream_to_record_on;
};

// Evaluates inputs of new shapes or choices eagerly, which also triggers whatever is created on
// first use. Records the evaluation when the same ones come again; from then on copies the inputs
// to where the graph reads them and replays it. Keeps only the graph of the latest shapes.
//
// `inner` must not wait for the device and must do the same for the same shapes and choices.
// Communication between ranks is recorded too, so all ranks must record; they do, as they see the
// same shapes. Libraries create some of their state, such as cuBLAS's handles, per thread: a rank
// without others records only on the thread that has evaluated.
class StepGraph {
 public:
  StepGraph(StepGraphOptions options, PredictAll inner);
  ~StepGraph();

  // Inputs with a watch are evaluated without a graph.
  std::vector<Tensor> operator()(const std::vector<DenoiserInput>& inputs);
  const GraphUse& use() const { return use_; }
  // Whether these have the shapes and choices of the latest inputs, in the same epoch.
  bool fits(const std::vector<DenoiserInput>& inputs) const;
  bool is_stale() const { return epoch_ != options_.epoch(); }
  // Gives back the graph and its memory; the next evaluation is one of new shapes.
  void forget();

 private:
  bool may_use(const std::vector<DenoiserInput>& inputs) const;
  bool may_record_here() const;
  void record();
  std::vector<Tensor> replay(const std::vector<DenoiserInput>& inputs);

  StepGraphOptions options_;
  PredictAll inner_;
  std::optional<c10::Stream> stream_;  // evaluations are recorded on it
  std::vector<DenoiserInput> inputs_;  // of the latest shapes; once recorded, what the graph reads
  std::thread::id evaluated_on_;       // which thread evaluated those eagerly
  std::vector<Tensor> velocities_;     // what the graph writes
  std::unique_ptr<DeviceGraph> graph_;
  std::uint64_t epoch_ = 0;  // of inputs and graph
  GraphUse use_;
};

}  // namespace braid
