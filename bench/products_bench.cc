// How fast are our products compared with LibTorch's? On a CPU without bfloat16 its fastest are in
// float32. One layer of Qwen3-4B's, FLUX.1's layers, and those of Qwen3-VL-8B's vision tower and
// language model for a picture of 1024x1024. The rate is per CPU time, which other processes
// disturb little.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "base/cpu.h"
#include "base/free_memory.h"
#include "ops/cpu/linear.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

enum class Way { kLibTorch, kOurs };

void product(benchmark::State& state, Way way, at::ScalarType dtype, Quantize form) {
  const c10::InferenceMode inference;
  if (way == Way::kLibTorch && dtype == at::kBFloat16 && !read_cpu().has_bfloat16()) {
    state.SkipWithError("takes minutes: this CPU has no instructions for bfloat16");
    return;
  }
  const auto tokens = state.range(0), inputs = state.range(1), outputs = state.range(2);
  const auto x = at::randn({tokens, inputs}, at::kFloat).to(dtype);
  const auto rows = at::randn({outputs, inputs}, at::kFloat).to(dtype);
  const auto weight =
      form == Quantize::kNone ? Matrix{.values_NC = rows} : quantize_rows(rows, form);
  const auto multiply = [&](const Tensor& tokens_MC) {
    return way == Way::kOurs ? ops::cpu::linear(tokens_MC, weight, {})
                             : at::linear(tokens_MC, weight.values_NC);
  };
  const auto few = x.narrow(0, 0, 7);
  const auto want = at::linear(few.to(at::kFloat), dequantize(weight, at::kFloat));
  const auto got = multiply(few);
  if ((got - want).norm().item<float>() > 0.02 * want.norm().item<float>())
    state.SkipWithError("differs from float32");
  const KeepFreedMemory keep;  // as while a pipeline denoises: pages of results are not zeroed anew
  for (auto _ : state) benchmark::DoNotOptimize(multiply(x));
  state.counters["GFLOP/s"] = benchmark::Counter(2e-9 * double(tokens * inputs * outputs),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({512, 9728, 2560})
      ->Args({512, 3072, 9216})
      ->Args({1536, 3072, 12288})
      ->Args({1536, 12288, 3072});
  bench->Args({4096, 1152, 4304})->Args({4096, 4304, 1152});
  bench->Args({1087, 4096, 12288})->Args({1087, 12288, 4096});
  bench->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->MinTime(1);
}

BENCHMARK_CAPTURE(product, libtorch_bfloat16, Way::kLibTorch, at::kBFloat16, Quantize::kNone)
    ->Apply(shapes);
BENCHMARK_CAPTURE(product, libtorch_float32, Way::kLibTorch, at::kFloat, Quantize::kNone)
    ->Apply(shapes);
BENCHMARK_CAPTURE(product, bfloat16, Way::kOurs, at::kBFloat16, Quantize::kNone)->Apply(shapes);
BENCHMARK_CAPTURE(product, int8, Way::kOurs, at::kBFloat16, Quantize::kInt8)->Apply(shapes);
BENCHMARK_CAPTURE(product, int8_dynamic, Way::kOurs, at::kBFloat16, Quantize::kInt8Dynamic)
    ->Apply(shapes);

}  // namespace
}  // namespace braid
