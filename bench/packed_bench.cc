// What does a dense layer with weights kept in their file's codes cost compared with bfloat16; and
// one of int8 codes of rotated numbers compared with int8-dynamic?
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <algorithm>
#include <cmath>
#include <ctime>
#include <string>
#include <vector>

#include "ops/cpu/packed.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"

namespace braid {
namespace {

// Codes from bytes 0 .. 7: all scales are small numbers.
Matrix coded_rows(ElementType type, std::int64_t rows, std::int64_t columns) {
  const auto block = block_of(type);
  const QuantFormat coding{.type = type, .inputs = columns};
  return {.values_NC = at::randint(0, 8, {rows, columns / block.numbers * block.bytes}, at::kByte),
          .coding = std::make_shared<const QuantFormat>(coding)};
}

double seconds_on(clockid_t clock) {
  timespec now{};
  ::clock_gettime(clock, &now);
  return double(now.tv_sec) + 1e-9 * double(now.tv_nsec);
}

struct Seconds {
  double wall, cpu;  // of all threads
};
template <class Work>
Seconds seconds_of(Work work) {
  const Seconds begin{.wall = seconds_on(CLOCK_MONOTONIC),
                      .cpu = seconds_on(CLOCK_PROCESS_CPUTIME_ID)};
  work();
  return {.wall = seconds_on(CLOCK_MONOTONIC) - begin.wall,
          .cpu = seconds_on(CLOCK_PROCESS_CPUTIME_ID) - begin.cpu};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + std::ptrdiff_t(values.size() / 2);
  std::ranges::nth_element(values, middle);
  return *middle;
}

// Alternates with the same layer in another form. `of_...` is the median ratio of the two times,
// `cpu_of_...` that of the processor's times, which other programs disturb less, `least_cpu_of_...`
// that of the shortest ones.
void in_turns(benchmark::State& state, const Matrix& weight, const Matrix& other,
              const std::string& name) {
  const auto x = at::randn({state.range(0), state.range(1)}, at::kFloat).to(at::kBFloat16);
  const auto bias = at::randn({state.range(2)}, at::kFloat).to(at::kBFloat16);
  Scratch scratch;
  const auto few = x.narrow(0, 0, 2);
  const auto want = ops::reference::linear(few, weight, bias);
  const auto got = ops::linear(few, weight, bias, scratch);
  if ((got - want).norm().item<float>() > 0.01 * want.norm().item<float>())
    state.SkipWithError("differs from its definition");
  std::vector<double> ratios, cpu_ratios;
  double least = INFINITY, others_least = INFINITY;
  for (auto _ : state) {
    const auto time_of = [&](const Matrix& w) {
      return seconds_of([&] { benchmark::DoNotOptimize(ops::linear(x, w, bias, scratch)); });
    };
    const auto mine = time_of(weight), others = time_of(other);
    state.SetIterationTime(mine.wall);
    ratios.push_back(mine.wall / others.wall);
    cpu_ratios.push_back(mine.cpu / others.cpu);
    least = std::min(least, mine.cpu);
    others_least = std::min(others_least, others.cpu);
  }
  state.counters["of_" + name] = median(ratios);
  state.counters["cpu_of_" + name] = median(cpu_ratios);
  state.counters["least_cpu_of_" + name] = least / others_least;
}

void coded_layer(benchmark::State& state, ElementType type) {
  const c10::InferenceMode inference;
  const Matrix dense{.values_NC = at::randn({state.range(2), state.range(1)}).to(at::kBFloat16)};
  const auto weight =
      type == ElementType::kBfloat16 ? dense : coded_rows(type, state.range(2), state.range(1));
  in_turns(state, weight, dense, "bfloat16");
}

void rotated_layer(benchmark::State& state) {
  const c10::InferenceMode inference;
  const auto plain =
      quantize_rows(at::randn({state.range(2), state.range(1)}), Quantize::kInt8Dynamic);
  auto rotated = plain;
  rotated.values_NC = plain.values_NC.view(at::kByte);
  rotated.coding = std::make_shared<const QuantFormat>(
      QuantFormat{.type = ElementType::kInt8, .inputs = state.range(1), .rotated_together = 256});
  in_turns(state, rotated, plain, "int8_dynamic");
}

// A core's time for a number: `ns`.
void decoded(benchmark::State& state, ElementType type, at::ScalarType to) {
  const c10::InferenceMode inference;
  const auto weight = coded_rows(type, 512, 3072);
  const auto out = at::empty({512, 3072}, to);
  for (auto _ : state) ops::decode_on_cpu(weight, out);
  using benchmark::Counter;
  state.counters["ns"] =
      Counter(1e-9 * double(out.numel()), Counter::kIsIterationInvariantRate | Counter::kInvert);
}

void coded_shapes(benchmark::internal::Benchmark* bench) {
  bench->Args({2, 3072, 9216})->Args({1536, 3072, 12288})->Args({1536, 12288, 3072});
  bench->Unit(benchmark::kMillisecond)->UseManualTime()->MinTime(2);
}

#define BRAID_CODED(name, type)                                                                 \
  BENCHMARK_CAPTURE(coded_layer, name, type)->Apply(coded_shapes);                              \
  BENCHMARK_CAPTURE(decoded, name##_to_bfloat16, type, at::kBFloat16)->MeasureProcessCPUTime(); \
  BENCHMARK_CAPTURE(decoded, name##_to_float32, type, at::kFloat)->MeasureProcessCPUTime()

BENCHMARK_CAPTURE(coded_layer, bfloat16, ElementType::kBfloat16)->Apply(coded_shapes);
BRAID_CODED(Q4_0, ElementType::kQ4_0);
BRAID_CODED(Q4_1, ElementType::kQ4_1);
BRAID_CODED(Q5_0, ElementType::kQ5_0);
BRAID_CODED(Q5_1, ElementType::kQ5_1);
BRAID_CODED(Q8_0, ElementType::kQ8_0);
BRAID_CODED(Q2_K, ElementType::kQ2_K);
BRAID_CODED(Q3_K, ElementType::kQ3_K);
BRAID_CODED(Q4_K, ElementType::kQ4_K);
BRAID_CODED(Q5_K, ElementType::kQ5_K);
BRAID_CODED(Q6_K, ElementType::kQ6_K);
BRAID_CODED(IQ4_NL, ElementType::kIq4Nl);
BRAID_CODED(IQ4_XS, ElementType::kIq4Xs);
BRAID_CODED(e4m3, ElementType::kFloat8E4M3);
BRAID_CODED(e5m2, ElementType::kFloat8E5M2);
#undef BRAID_CODED
BENCHMARK(rotated_layer)
    ->Apply(coded_shapes)
    ->Args({1536, 3072, 3072})
    ->Args({1536, 3072, 9216})
    ->Args({4608, 3072, 3072});

}  // namespace
}  // namespace braid
