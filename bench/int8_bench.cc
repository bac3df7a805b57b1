// What does a dense layer on 8-bit codes cost compared with bfloat16? FLUX.1's widest layers.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "ops/ops.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

void layer(benchmark::State& state, Quantize form) {
  const c10::InferenceMode inference;
  const auto x = at::randn({state.range(0), state.range(1)}, at::kFloat).to(at::kBFloat16);
  const auto rows = at::randn({state.range(2), state.range(1)}, at::kFloat).to(at::kBFloat16);
  const auto bias = at::randn({state.range(2)}, at::kFloat).to(at::kBFloat16);
  const auto weight =
      form == Quantize::kNone ? Matrix{.values_NC = rows} : quantize_rows(rows, form);
  Scratch scratch;
  const auto few = x.narrow(0, 0, 2);
  const auto want = ops::reference::linear(few, weight, bias);
  const auto got = ops::linear(few, weight, bias, scratch);
  if ((got - want).norm().item<float>() > 0.01 * want.norm().item<float>())
    state.SkipWithError("differs from its definition");
  for (auto _ : state) benchmark::DoNotOptimize(ops::linear(x, weight, bias, scratch));
}

void shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({512, 3072, 9216})->Args({1536, 3072, 12288})->Args({1536, 12288, 3072});
  bench->Unit(benchmark::kMillisecond)->UseRealTime()->MinTime(2);
}

BENCHMARK_CAPTURE(layer, bfloat16, Quantize::kNone)->Apply(shapes);
BENCHMARK_CAPTURE(layer, int8, Quantize::kInt8)->Apply(shapes);
BENCHMARK_CAPTURE(layer, int8_dynamic, Quantize::kInt8Dynamic)->Apply(shapes);

}  // namespace
}  // namespace braid
