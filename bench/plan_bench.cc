// How accurate are the planner's times on this machine? First measures the rate of a matrix product
// and the speed of memory and of the ranks' collectives. From these alone it predicts a step of a
// synthetic transformer under several layouts, then times it. Without real weights: the values that
// ranks compute are tested elsewhere.
#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <benchmark/benchmark.h>

#include <algorithm>
#include <chrono>
#include <cstdio>

#include "comm/thread.h"
#include "made_model.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "parallel/layout.h"
#include "pipeline/loaded/model.h"
#include "pipeline/planner/planner.h"

namespace braid {
namespace {

constexpr int kCores = 2, kTimes = 5;

const FluxConfig kConfig{.num_double = 2,
                         .num_single = 4,
                         .num_heads = 6,
                         .text_width = 256,
                         .pooled_width = 64,
                         .guidance_embeds = true};

PlanJob job_of(at::ScalarType dtype) {
  return {.family = make_flux_family({.flux = kConfig}),
          .dtype = dtype,
          .width = 512,
          .height = 512,
          .text_tokens = 128,
          .branches = 2};
}

// The least of several runs: other processes use this machine too.
template <class Body>
double seconds_of(const Body& body) {
  double least = INFINITY;
  for (int i = 0; i < kTimes; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    body();
    const auto end = std::chrono::steady_clock::now();
    least = std::min(least, std::chrono::duration<double>(end - begin).count());
  }
  return least;
}

// All ranks at once, each with its share of the cores, run `body` several times; the least time.
double seconds_on_ranks(int ranks,
                        const std::function<std::function<void()>(const Group& world)>& prepare) {
  double least = 0;
  run_ranks({.size = ranks, .deadline = std::chrono::seconds(100)}, [&](const Group& world) {
    const c10::InferenceMode no_autograd;
    at::set_num_threads(kCores / ranks);
    const auto body = prepare(world);
    body();
    const auto seconds = seconds_of([&] {
      world.barrier();
      body();
      world.barrier();
    });
    if (world.rank() == 0) least = seconds;
  });
  return least;
}

Machine measured_machine(int ranks, at::ScalarType dtype) {
  const auto width = kConfig.hidden();
  const double multiplied = seconds_on_ranks(ranks, [&](const Group&) {
    const auto x = at::zeros({1152 / ranks, width}, dtype);
    const auto w = at::zeros({4 * width, width}, dtype);
    return [=] { benchmark::DoNotOptimize(at::linear(x, w)); };
  });
  constexpr std::int64_t kBytes = 1 << 25;  // beyond the caches
  const double copied = seconds_on_ranks(ranks, [&](const Group&) {
    const auto from = at::ones({kBytes}, at::kByte), to = at::empty({kBytes}, at::kByte);
    return [=] { to.copy_(from); };
  });
  LinkSpec link{"measured", 1e9, 0};
  if (ranks > 1) {
    const auto gather = [&](std::int64_t bytes) {
      return seconds_on_ranks(ranks, [=](const Group& world) {
        const auto x = at::ones({bytes}, at::kByte);
        return [=] { benchmark::DoNotOptimize(world.all_gather(x, 0)); };
      });
    };
    link.latency = gather(8);
    link.speed = double(kBytes / 8) * (ranks - 1) / gather(kBytes / 8);
  }
  const double flops = 2.0 * (1152 / ranks) * width * 4 * width / multiplied;
  const DeviceSpec device{"this one", 1e12, flops, flops, 2.0 * kBytes / copied, 1, "measured"};
  return {.devices = std::vector(std::size_t(ranks), device), .link = link, .network = link};
}

double measured_step(const PlanJob& job, const Degrees& grid) {
  const MadeFile file(kConfig, job.dtype);
  return seconds_on_ranks(grid.product(), [&](const Group& world) {
    const auto mesh = make_mesh(world, grid);
    auto checkpoint = Checkpoint::open_file(file.path());
    auto names = flux_names(checkpoint);
    const auto flux = std::make_shared<const Flux>(
        kConfig,
        Weights(std::move(checkpoint), std::move(names),
                {.dtype = job.dtype, .tensor_parallel = mesh.tp},
                flux_sharding(kConfig, SharedModulation::kYes)),
        attend_over(mesh), blocks_of_rank(*job.family, mesh, at::kCPU, 1));
    const auto part = part_of(flux);
    const auto predict = predict_over(mesh, part);
    auto in = made_input(job);
    in.modulations_BM = at::zeros({job.batch_size, part.num_modulations}, job.dtype);
    const std::vector<DenoiserInput> branches(std::size_t(job.branches), in);
    return [=] { benchmark::DoNotOptimize(predict(branches)); };
  });
}

void predicted_step(benchmark::State& state, const Degrees& grid, at::ScalarType dtype) {
  const auto job = job_of(dtype);
  for (auto _ : state) {
    const auto layout = plan_layout(job, measured_machine(grid.product(), dtype), grid);
    const double predicted = layout.step.total(), measured = measured_step(job, grid);
    state.SetIterationTime(measured);
    double communicated = 0;
    for (const auto& [axis, seconds] : layout.step.communication) communicated += seconds;
    state.counters["predicted_ms"] = 1e3 * predicted;
    state.counters["compute_ms"] = 1e3 * layout.step.compute;
    state.counters["memory_ms"] = 1e3 * layout.step.memory;
    state.counters["comm_ms"] = 1e3 * communicated;
    state.counters["error_percent"] = 100 * (predicted / measured - 1);
  }
}

const bool kRegistered = [] {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const Degrees& grid : {Degrees{}, Degrees{.tp = 2}, Degrees{.ulysses = 2},
                                Degrees{.ring = 2}, Degrees{.cfg = 2}, Degrees{.pp = 2}}) {
      const auto name = layout_name(grid) + " " + std::string(c10::getDtypeNames(dtype).first);
      benchmark::RegisterBenchmark(
          name.c_str(), [=](benchmark::State& state) { predicted_step(state, grid, dtype); })
          ->UseManualTime()
          ->Iterations(1)
          ->Unit(benchmark::kMillisecond);
    }
  return true;
}();

}  // namespace
}  // namespace braid
