#include "pipeline/proofs/bench.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "pipeline/engine.h"
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
  Runs(const Group& world, const Mesh& mesh, const Denoisers& denoisers,
       std::vector<DenoiserInput> inputs, at::Device device)
      : world_(world),
        mesh_(mesh),
        denoisers_(denoisers),
        inputs_(std::move(inputs)),
        device_(device) {}

  // Seconds until this rank is done; on a CPU, until all are.
  double time() {
    world_.await();
    const auto before = traffic_of(mesh_);
    const Moment begin(device_);
    const auto velocity = denoisers_.predict(inputs_).front();
    const Moment computed(device_);
    finish(velocity);
    if (denoisers_.graph_use().replays == 0) traffic_ = traffic_between(before, traffic_of(mesh_));
    world_.await();
    return device_.is_cpu() ? begin.seconds_until(Moment(device_)) : begin.seconds_until(computed);
  }
  const TrafficByAxis& traffic() const { return traffic_; }  // of one that was not replayed

 private:
  const Group& world_;
  const Mesh& mesh_;
  const Denoisers& denoisers_;
  std::vector<DenoiserInput> inputs_;
  at::Device device_;
  TrafficByAxis traffic_;
};

// Fills in what a rank measures after loading. Returns its seconds, run by run.
std::vector<double> evaluate(const Bench& bench, const Mesh& mesh, const Denoisers& denoisers,
                             at::Device device, BenchResult& mine) {
  const KeepFreedMemory keep;
  std::vector<DenoiserInput> branches(std::size_t(mesh.degrees.cfg),
                                      inputs_of(bench.probe, 0, device));
  for (std::size_t b = 0; b < branches.size(); ++b) branches[b].step.branch = int(b);
  const int warm_ups = bench.options.warm_ups;
  for (int run = 0; run <= warm_ups; ++run) {
    const Moment ready(device);
    add_modulations(branches, denoisers);
    const Moment modulated(device);
    refine_texts(branches, denoisers);
    mine.modulations_seconds = ready.seconds_until(modulated);  // of the last, warm run
    mine.refining_seconds = modulated.seconds_until(Moment(device));
  }
  std::optional<KeptPrefixes> prefixes;
  if (bench.probe.keeps_prefix) prefixes.emplace(denoisers, branches);
  Runs runs(mesh.world, mesh, denoisers, branches, device);
  // The first evaluation runs as it is, the second one is recorded.
  const bool is_recorded = warm_ups > 0 && denoisers.graph_use().why_not.empty();
  for (int run = 0; run < warm_ups + int(is_recorded); ++run) mine.warm_up_seconds += runs.time();
  std::vector<double> seconds;
  for (int run = 0; run < bench.options.runs; ++run) seconds.push_back(runs.time());
  mine.traffic = runs.traffic();
  mine.graph = denoisers.graph_use();
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
  const auto denoisers = denoisers_of(bench.options.probe, bench.probe, mesh, bench.devices);
  world.await();
  mine.load_seconds = begin.seconds_until(Moment(at::kCPU));
  if (bench.probe.are_seen_once())
    denoisers->keep_references(
        bench.probe.family->references_alone(references_of(bench.probe, 0, device)));
  meter.enter(Phase::kDenoise);
  const auto seconds = evaluate(bench, mesh, *denoisers, device, mine);
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
