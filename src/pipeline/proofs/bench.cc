#include "pipeline/proofs/bench.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "pipeline/engine.h"
#include "pipeline/model.h"
#include "pipeline/pictures/kept_references.h"
#include "pipeline/proofs/moment.h"
#include "pipeline/rank_threads.h"
#include "pipeline/text_stream.h"

namespace braid {
namespace {

// The slowest rank's time, run by run.
std::vector<double> slowest(const Group& world, const std::vector<double>& mine) {
  const auto all = world.all_gather(at::tensor(mine, at::kDouble).unsqueeze(0), 0).amax(0);
  return {all.const_data_ptr<double>(), all.const_data_ptr<double>() + all.numel()};
}

// Waits until the device has finished its work.
void finish(const Tensor& result) {
  check(result.flatten().narrow(0, 0, 1).to(at::kCPU, at::kFloat).isfinite().item<bool>(),
        "the transformer's output is not finite");
}

// State shared by the ranks of a bench. The first rank fills `result`.
struct Bench {
  const BenchOptions& options;
  const Probe& probe;
  std::vector<at::Device> devices;
  BenchResult& result;
  PeakMeter meter = {};
};

// Evaluations one after another.
class Runs {
 public:
  Runs(const Group& world, const Mesh& mesh, StepGraph& predict, std::vector<DenoiserInput> inputs,
       at::Device device)
      : world_(world),
        mesh_(mesh),
        predict_(predict),
        inputs_(std::move(inputs)),
        device_(device) {}

  // Seconds until this rank is done; on a CPU, until all are.
  double time() {
    world_.await();
    const auto before = traffic_of(mesh_);
    const Moment begin(device_);
    const auto velocity = predict_(inputs_).front();
    const Moment computed(device_);
    finish(velocity);
    if (predict_.use().replays == 0) traffic_ = traffic_between(before, traffic_of(mesh_));
    world_.await();
    return device_.is_cpu() ? begin.seconds_until(Moment(device_)) : begin.seconds_until(computed);
  }
  const TrafficByAxis& traffic() const { return traffic_; }  // of one that was not replayed

 private:
  const Group& world_;
  const Mesh& mesh_;
  StepGraph& predict_;
  std::vector<DenoiserInput> inputs_;
  at::Device device_;
  TrafficByAxis traffic_;
};

// What a rank loads, under the layout.
struct Loaded {
  Loaded(const Bench& bench, const Mesh& mesh, at::Device device);

  KeptReferences kept;
  DenoiserPart transformer;
  Controls controls;
};

Loaded::Loaded(const Bench& bench, const Mesh& mesh, at::Device device) {
  const auto& options = bench.options.probe;
  const auto shardings = shardings_of(options, bench.probe, mesh);
  transformer = kept.attending([&](KeptKeys* keys) {
    return transformer_of(options, bench.probe, mesh, bench.devices, shardings,
                          attend_over(mesh, options.pipeline.layout.ring_form, keys));
  });
  controls = controls_of(options, bench.probe, mesh, device);
  kept.set_model(predict_over(mesh, transformer), mesh.degrees.cfg);
}

StepGraph graph_of(const Bench& bench, const Mesh& mesh, const Loaded& loaded, at::Device device) {
  return {graph_options(mesh, model_options(bench.options.probe, device)),
          predict_over(mesh, loaded.transformer, loaded.controls)};
}

// Fills in what a rank measures after loading. Returns its seconds, run by run.
std::vector<double> evaluate(const Bench& bench, const Mesh& mesh, const Loaded& loaded,
                             at::Device device, BenchResult& mine) {
  const KeepFreedMemory keep;
  auto in = inputs_of(bench.probe, 0, device);
  const int warm_ups = bench.options.warm_ups;
  for (int run = 0; run <= warm_ups; ++run) {
    const Moment ready(device);
    in = as_in_a_step(in, mesh, loaded.transformer, loaded.controls);
    const Moment modulated(device);
    in = with_refined_text(in, mesh, loaded.transformer);
    mine.modulations_seconds = ready.seconds_until(modulated);  // of the last, warm run
    mine.refining_seconds = modulated.seconds_until(Moment(device));
  }
  auto predict = graph_of(bench, mesh, loaded, device);
  Runs runs(mesh.world, mesh, predict, std::vector(std::size_t(mesh.degrees.cfg), in), device);
  // The first evaluation runs as it is, the second one is recorded.
  const bool is_recorded = warm_ups > 0 && predict.use().why_not.empty();
  for (int run = 0; run < warm_ups + int(is_recorded); ++run) mine.warm_up_seconds += runs.time();
  std::vector<double> seconds;
  for (int run = 0; run < bench.options.runs; ++run) seconds.push_back(runs.time());
  mine.traffic = runs.traffic();
  mine.graph = predict.use();
  const bool is_shared =
      !why_text_shares_stream(*bench.probe.family, model_options(bench.options.probe, device))
           .empty();
  mine.text_stream = is_shared ? TextStream::kShared : TextStream::kOwn;
  return seconds;
}

void bench_rank(Bench& bench, const Group& world) {
  auto& meter = bench.meter;
  const auto device = bench.devices[std::size_t(world.rank())];
  const c10::DeviceGuard on(device);
  meter.watch(device);
  meter.enter(Phase::kLoad);
  world.await();  // each process has read the configuration by itself
  const auto mesh = make_mesh(world, degrees_of(bench.options.probe.pipeline.layout));
  auto mine = bench.result;
  const Moment begin(at::kCPU);
  Loaded loaded(bench, mesh, device);
  world.await();
  mine.load_seconds = begin.seconds_until(Moment(at::kCPU));
  if (bench.probe.are_seen_once())
    loaded.kept.keep(bench.probe.family->references_alone(references_of(bench.probe, 0, device)));
  meter.enter(Phase::kDenoise);
  const auto seconds = evaluate(bench, mesh, loaded, device, mine);
  meter.finish();
  mine.seconds = slowest(world, seconds);
  mine.peaks = meter.gather(world, device);
  if (world.rank() == 0) bench.result = std::move(mine);
}

}  // namespace

double BenchResult::median_seconds() const {
  auto sorted = seconds;
  const auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return sorted.empty() ? 0 : *middle;
}

BenchResult bench(const BenchOptions& options) {
  require(options.runs >= 1 && options.runs <= 10'000 && options.warm_ups >= 0 &&
              options.warm_ups <= 10'000,
          "a bench should have 1 to 10000 runs and 0 to 10000 warm-ups");
  const auto& pipeline = options.probe.pipeline;
  const auto deployment = deployment_of(options.probe);
  const auto world = make_world(deployment);
  const auto probe = probe_of(options.probe, deployment);
  const int threads = threads_per_rank(pipeline, world->ranks_on_these_cores());
  BenchResult result{.seconds = {},
                     .modulations_seconds = 0,
                     .refining_seconds = 0,
                     .load_seconds = 0,
                     .warm_up_seconds = 0,
                     .traffic = {},
                     .tokens = probe.tokens(),
                     .width = probe.size.width,
                     .height = probe.size.height,
                     .dtype = probe.dtype,
                     .num_ranks = world->size(),
                     .threads = threads};
  Bench bench{.options = options, .probe = probe, .devices = deployment.devices, .result = result};
  world->run([&](const Group& group) {
    const UseThreads use(threads);
    bench_rank(bench, group);
  });
  return result;
}

}  // namespace braid
