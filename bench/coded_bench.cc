// What does a dense layer with weights kept in their file's codes cost compared with bfloat16?
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <chrono>
#include <vector>

#include "ops/ops.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

// Codes from bytes 0 .. 7: all scales are small numbers.
Matrix coded_rows(ElementType type, std::int64_t rows, std::int64_t columns) {
  const auto block = block_of(type);
  const Coding coding{.type = type, .inputs = columns};
  return {.values_NC = at::randint(0, 8, {rows, columns / block.numbers * block.bytes}, at::kByte),
          .coding = std::make_shared<const Coding>(coding)};
}

template <class Work>
double seconds_of(Work work) {
  const auto begin = std::chrono::steady_clock::now();
  work();
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
}

// Alternates with the same layer in bfloat16: `of_bfloat16` is the median ratio of the two times.
void coded_layer(benchmark::State& state, ElementType type) {
  const c10::InferenceMode inference;
  const auto x = at::randn({state.range(0), state.range(1)}, at::kFloat).to(at::kBFloat16);
  const auto bias = at::randn({state.range(2)}, at::kFloat).to(at::kBFloat16);
  const Matrix dense{.values_NC = at::randn({state.range(2), state.range(1)}).to(at::kBFloat16)};
  const auto weight =
      type == ElementType::kBfloat16 ? dense : coded_rows(type, state.range(2), state.range(1));
  Scratch scratch;
  const auto few = x.narrow(0, 0, 2);
  const auto want = ops::reference::linear(few, weight, bias);
  const auto got = ops::linear(few, weight, bias, scratch);
  if ((got - want).norm().item<float>() > 0.01 * want.norm().item<float>())
    state.SkipWithError("differs from its definition");
  std::vector<double> ratios;
  for (auto _ : state) {
    const auto time_of = [&](const Matrix& w) {
      return seconds_of([&] { benchmark::DoNotOptimize(ops::linear(x, w, bias, scratch)); });
    };
    const auto seconds = time_of(weight);
    state.SetIterationTime(seconds);
    ratios.push_back(seconds / time_of(dense));
  }
  std::ranges::nth_element(ratios, ratios.begin() + std::ptrdiff_t(ratios.size() / 2));
  state.counters["of_bfloat16"] = ratios[ratios.size() / 2];
}

void coded_shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({2, 3072, 9216})->Args({1536, 3072, 12288})->Args({1536, 12288, 3072});
  bench->Unit(benchmark::kMillisecond)->UseManualTime()->MinTime(2);
}

BENCHMARK_CAPTURE(coded_layer, bfloat16, ElementType::kBfloat16)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, Q8_0, ElementType::kQ8_0)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, Q4_0, ElementType::kQ4_0)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, Q4_K, ElementType::kQ4_K)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, Q5_K, ElementType::kQ5_K)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, Q6_K, ElementType::kQ6_K)->Apply(coded_shapes);
BENCHMARK_CAPTURE(coded_layer, float8, ElementType::kFloat8E4M3)->Apply(coded_shapes);

}  // namespace
}  // namespace braid
