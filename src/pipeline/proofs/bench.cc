#include "pipeline/proofs/bench.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>

#include "base/error.h"
#include "base/free_memory.h"
#include "pipeline/deployment/ranks.h"
#include "pipeline/devices/rank_threads.h"
#include "pipeline/loaded/text_stream.h"
#include "pipeline/proofs/moment.h"

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
  const Deployment& deployment;
  const Probe& probe;
  BenchResult& result;
  PeakMeter meter = {};
};

// Evaluations one after another.
class Runs {
 public:
  Runs(const Mesh& mesh, const Denoisers& denoisers, const OncePerPicture& once,
       std::vector<DenoiserInput> branches, at::Device device)
      : mesh_(mesh),
        denoisers_(denoisers),
        once_(once),
        branches_(std::move(branches)),
        replays_(denoisers.graph_use().replays),
        device_(device) {}

  // Seconds until this rank is done; on a CPU, until all are.
  double time() {
    mesh_.world.await();
    const auto before = traffic_of(mesh_);
    const Moment begin(device_);
    const auto velocity = once_.predict(branches_).front();
    const Moment computed(device_);
    finish(velocity);
    if (denoisers_.graph_use().replays == replays_)
      traffic_ = traffic_between(before, traffic_of(mesh_));
    mesh_.world.await();
    return device_.is_cpu() ? begin.seconds_until(Moment(device_)) : begin.seconds_until(computed);
  }
  const TrafficByAxis& traffic() const { return traffic_; }  // of one that was not replayed

 private:
  const Mesh& mesh_;
  const Denoisers& denoisers_;
  const OncePerPicture& once_;
  std::vector<DenoiserInput> branches_;
  std::int64_t replays_;  // before these runs
  at::Device device_;
  TrafficByAxis traffic_;
};

// The branches of a step for each of the model's ranges of noise levels.
std::vector<std::vector<DenoiserInput>> timed_steps(const Bench& bench, const Denoisers& denoisers,
                                                    at::Device device) {
  const int num_branches = num_branches_of(bench.deployment);
  std::vector<std::vector<DenoiserInput>> steps;
  for (const auto& step : steps_of(*bench.probe.family)) {
    steps.push_back(branches_of(bench.probe, 0, device, step, num_branches));
    modulate_controls(steps.back(), denoisers.controls());
  }
  return steps;
}

// Makes what is computed once per picture, timed when everything is warm.
void prepare(const Bench& bench, const Denoisers& denoisers,
             const std::vector<std::vector<DenoiserInput>>& steps, at::Device device,
             std::optional<OncePerPicture>& once, BenchResult& mine) {
  for (int run = 0; run <= bench.options.warm_ups; ++run) {
    const Moment ready(device);
    std::optional<Moment> modulated;
    once.emplace(denoisers, steps, bench.probe.prefix, [&] { modulated.emplace(device); });
    mine.modulations_seconds = ready.seconds_until(*modulated);  // of the last, warm run
    mine.refining_seconds = modulated->seconds_until(Moment(device));
  }
}

// Fills in what a rank measures after loading, but for the seconds of other ranks.
void evaluate(const Bench& bench, const Mesh& mesh, const Denoisers& denoisers, at::Device device,
              BenchResult& mine) {
  const KeepFreedMemory keep;
  const auto steps = timed_steps(bench, denoisers, device);
  std::optional<OncePerPicture> once;
  prepare(bench, denoisers, steps, device, once, mine);
  const int warm_ups = bench.options.warm_ups;
  // The first evaluation runs as it is, the second one is recorded.
  const bool is_recorded = warm_ups > 0 && denoisers.graph_use().why_not.empty();
  for (const auto& branches : steps) {
    Runs runs(mesh, denoisers, *once, branches, device);
    for (int run = 0; run < warm_ups + int(is_recorded); ++run) mine.warm_up_seconds += runs.time();
    const auto number = denoisers.serving(branches.front().step);
    auto& timed = mine.denoisers.emplace_back();
    timed.folder = denoisers.list()[number].part.folder;
    for (int run = 0; run < bench.options.runs; ++run) timed.seconds.push_back(runs.time());
    if (mine.traffic.empty()) mine.traffic = runs.traffic();
  }
  mine.graph = denoisers.graph_use();
  const bool is_shared = !why_text_shares_stream(bench.deployment, device).empty();
  mine.text_stream = is_shared ? TextStream::kShared : TextStream::kOwn;
}

void bench_rank(Bench& bench, const Group& world) {
  auto& meter = bench.meter;
  const auto device = bench.deployment.devices[std::size_t(world.rank())];
  const c10::DeviceGuard on(device);
  meter.watch(device);
  meter.enter(Phase::kLoad);
  world.await();  // each process has read the configuration by itself
  const auto mesh = make_mesh(world, bench.deployment.degrees());
  auto mine = bench.result;
  const Moment begin(at::kCPU);
  const auto denoisers = denoisers_of(mesh, bench.deployment);
  world.await();
  mine.load_seconds = begin.seconds_until(Moment(at::kCPU));
  if (bench.probe.keeps_references())
    denoisers->keep_references(
        bench.probe.family->references_alone(references_of(bench.probe, 0, device)));
  meter.enter(Phase::kDenoise);
  evaluate(bench, mesh, *denoisers, device, mine);
  meter.finish();
  for (auto& timed : mine.denoisers) timed.seconds = slowest(world, timed.seconds);
  mine.peaks = meter.gather(world, device);
  if (world.rank() == 0) bench.result = std::move(mine);
}

}  // namespace

double TimedDenoiser::median_seconds() const {
  auto sorted = seconds;
  const auto middle = sorted.begin() + std::ptrdiff_t(sorted.size() / 2);
  std::nth_element(sorted.begin(), middle, sorted.end());
  return sorted.empty() ? 0 : *middle;
}

const TimedDenoiser& BenchResult::slowest() const {
  return *std::ranges::max_element(denoisers, {}, &TimedDenoiser::median_seconds);
}

BenchResult bench(Deployment deployment, const BenchOptions& options) {
  require(options.runs >= 1 && options.runs <= 10'000 && options.warm_ups >= 0 &&
              options.warm_ups <= 10'000,
          "a bench should have 1 to 10000 runs and 0 to 10000 warm-ups");
  deployment.options.cache = {};  // which would leave evaluations out
  const auto world = make_world(deployment);
  const auto probe = probe_of(options.probe, deployment);
  const int threads = threads_per_rank(deployment.options, world->ranks_on_these_cores());
  BenchResult result{.denoisers = {},
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
  Bench bench{.options = options, .deployment = deployment, .probe = probe, .result = result};
  world->run([&](const Group& group) {
    const UseThreads use(threads);
    bench_rank(bench, group);
  });
  return result;
}

}  // namespace braid
