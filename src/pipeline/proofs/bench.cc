#include "pipeline/proofs/bench.h"

#include <ATen/ATen.h>
#include <c10/core/DeviceGuard.h>

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "pipeline/engine.h"
#include "pipeline/model.h"
#include "pipeline/rank_threads.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// Waits until the device has done what it was given.
void finish(const Tensor& result) {
  check(result.flatten().narrow(0, 0, 1).to(at::kCPU, at::kFloat).isfinite().item<bool>(),
        "the transformer's output is no number");
}

// What the ranks of a bench share. The first one fills `result`.
struct Bench {
  const BenchOptions& options;
  const Probe& probe;
  std::vector<at::Device> devices;
  BenchResult& result;
  PeakMeter meter = {};
};

void bench_rank(Bench& bench, const Group& world) {
  auto& [options, probe, devices, result, meter] = bench;
  const auto device = devices[std::size_t(world.rank())];
  const c10::DeviceGuard on(device);
  meter.watch(device);
  meter.enter(Phase::kLoad);
  const auto& layout = options.probe.pipeline.layout;
  const auto mesh = make_mesh(world, degrees_of(layout));
  const auto begin = Clock::now();
  const auto transformer =
      transformer_of(options.probe, probe, mesh, devices, shardings_of(options.probe, probe, mesh),
                     attend_over(mesh, ring_form_of(layout)));
  world.await();
  const double load_seconds = seconds_since(begin);
  const auto predict = predict_over(mesh, transformer);
  const auto inputs = std::vector(std::size_t(mesh.degrees.cfg), inputs_of(probe, 0, device));

  meter.enter(Phase::kDenoise);
  std::vector<double> seconds;
  double warm_up_seconds = 0;
  TrafficByAxis traffic;
  for (int run = -options.warm_ups; run < options.runs; ++run) {
    world.await();
    const auto before = traffic_of(mesh);
    const auto start = Clock::now();
    finish(predict(inputs).front());
    traffic = traffic_between(before, traffic_of(mesh));
    world.await();
    if (run >= 0)
      seconds.push_back(seconds_since(start));
    else
      warm_up_seconds += seconds_since(start);
  }
  meter.finish();
  auto peaks = meter.gather(world, device);
  if (world.rank() != 0) return;
  result.peaks = std::move(peaks);
  result.seconds = std::move(seconds);
  result.load_seconds = load_seconds;
  result.warm_up_seconds = warm_up_seconds;
  result.traffic = std::move(traffic);
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
          "a bench should have 1 to 10000 runs and 0 to 10000 before them");
  const auto& pipeline = options.probe.pipeline;
  const auto world = make_world(pipeline);
  const auto devices = devices_of(pipeline, degrees_of(pipeline.layout));
  const auto probe = probe_of(options.probe, devices.front());
  const int threads = threads_per_rank(pipeline, world->ranks_on_these_cores());
  BenchResult result{.seconds = {},
                     .load_seconds = 0,
                     .warm_up_seconds = 0,
                     .traffic = {},
                     .tokens = probe.tokens(),
                     .width = probe.size.width,
                     .height = probe.size.height,
                     .dtype = probe.dtype,
                     .num_ranks = world->size(),
                     .threads = threads};
  Bench bench{.options = options, .probe = probe, .devices = devices, .result = result};
  world->run([&](const Group& group) {
    const UseThreads use(threads);
    bench_rank(bench, group);
  });
  return result;
}

}  // namespace braid
