// What do the kernels between matrix products save, and how far are they from a copy? Each beside
// its definition at FLUX.1's width and 1024x1024 pixels (4608 tokens), in bfloat16 and float32.
// `to_copy` is the least time over that of a copy of as many bytes, timed in turns: other programs
// may be running.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <cmath>

#include "base/free_memory.h"
#include "row_operations.h"

namespace braid {
namespace {

constexpr RowShape kShape{.tokens = 4608, .width = 3072};

template <class Run>
double seconds_of(const Run& run) {
  const auto begin = std::chrono::steady_clock::now();
  benchmark::DoNotOptimize(run());
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

void time_operation(benchmark::State& state, const std::string& name, at::ScalarType dtype,
                    bool is_kernel) {
  const c10::InferenceMode no_autograd;
  const KeepFreedMemory keep;
  const auto operation = row_operation(name, dtype, kShape);
  if (!is_right(operation)) state.SkipWithError("the kernel is wrong");
  const auto from = at::ones({operation.bytes / 2}, at::kByte), to = at::empty_like(from);
  double least = INFINITY, least_copy = INFINITY;
  for (auto _ : state) {
    const auto seconds = seconds_of(is_kernel ? operation.kernel : operation.definition);
    state.SetIterationTime(seconds);
    least = std::min(least, seconds);
    least_copy = std::min(least_copy, seconds_of([&] { return to.copy_(from); }));
  }
  state.counters["to_copy"] = least / least_copy;
}

const bool are_registered = [] {
  for (const auto& name : row_operation_names())
    for (const auto dtype : {at::kBFloat16, at::kFloat})
      for (const bool is_kernel : {true, false}) {
        const auto called =
            name + "/" + std::string(c10::toString(dtype)) + (is_kernel ? "" : "/definition");
        benchmark::RegisterBenchmark(
            called.c_str(),
            [=](benchmark::State& state) { time_operation(state, name, dtype, is_kernel); })
            ->UseManualTime()
            ->Unit(benchmark::kMillisecond);
      }
  return true;
}();

}  // namespace
}  // namespace braid
