// What do the kernels between matrix products save? Each beside its reference, at FLUX.1's width
// and 512x512 pixels (1536 tokens), in bfloat16.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include <array>

#include "ops/cpu/cpu.h"
#include "ops/reference.h"

namespace braid {
namespace {

constexpr std::int64_t kTokens = 1536, kWidth = 3072, kHeads = 24, kHead = 128;

Tensor draw(at::IntArrayRef shape) { return at::randn(shape).to(at::kBFloat16); }

bool are_near(const Tensor& a, const Tensor& b) {
  return ((a - b).abs().max() / b.abs().max()).item<double>() < 0.02;
}

template <class Run>
void time(benchmark::State& state, Run kernel, Run definition) {
  const c10::InferenceMode no_autograd;
  if (!are_near(kernel(), definition())) state.SkipWithError("the kernel is wrong");
  const bool is_kernel = state.range(0) == 0;
  state.SetLabel(is_kernel ? "kernel" : "definition");
  for (auto _ : state) benchmark::DoNotOptimize(is_kernel ? kernel() : definition());
}

using Run = std::function<Tensor()>;

void modulated_norm(benchmark::State& state) {
  const auto x = draw({1, kTokens, kWidth});
  const Modulation m{draw({1, 1, kWidth}), draw({1, 1, kWidth}), draw({1, 1, kWidth})};
  time<Run>(
      state, [&] { return ops::cpu::modulated_norm(x, m); },
      [&] { return ops::reference::modulated_norm(x, m); });
}
BENCHMARK(modulated_norm)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void gated_residual(benchmark::State& state) {
  const auto x = draw({1, kTokens, kWidth}), y = draw({1, kTokens, kWidth});
  const auto gate = draw({1, 1, kWidth});
  time<Run>(
      state, [&] { return ops::cpu::gated_residual(x, gate, y); },
      [&] { return ops::reference::gated_residual(x, gate, y); });
}
BENCHMARK(gated_residual)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void joined_gelu(benchmark::State& state) {
  const auto fused = draw({1, kTokens, 7 * kWidth});
  const auto x = draw({1, kTokens, kWidth}), y = fused.narrow(2, 3 * kWidth, 4 * kWidth);
  time<Run>(
      state, [&] { return ops::cpu::joined_gelu(x, y); },
      [&] { return ops::reference::joined_gelu(x, y); });
}
BENCHMARK(joined_gelu)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

void normed_rotated(benchmark::State& state) {
  const auto fused = draw({1, kTokens, 7 * kWidth});
  const std::array parts = {
      ops::NormedHeads{fused.narrow(2, 0, kWidth).unflatten(-1, {kHeads, kHead}), draw({kHead})}};
  const auto angles = at::randn({kTokens, kHead / 2}).repeat_interleave(2, 1);
  const Rope rope{.cos = angles.cos(), .sin = angles.sin()};
  time<Run>(
      state, [&] { return ops::cpu::normed_rotated(parts, 1e-6, rope); },
      [&] { return ops::reference::normed_rotated(parts, 1e-6, rope); });
}
BENCHMARK(normed_rotated)->Arg(0)->Arg(1)->UseRealTime()->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
