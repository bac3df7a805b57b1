// How fast is our attention compared with LibTorch's, for each instruction set of this machine? A
// few of FLUX.1's heads at its lengths, and of Qwen3-VL's vision tower, in bfloat16; LibTorch's in
// float32 if the processor has no instructions for bfloat16. The rate is per CPU time, which other
// processes disturb little.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "base/cpu.h"
#include "ops/cpu/attention.h"
#include "ops/kernels/attention_kernels.h"

namespace braid {
namespace {

constexpr int kLibTorch = -1;

// `number`: one of our kernels, see runnable_attention(), or kLibTorch.
void attention(benchmark::State& state, int number) {
  const c10::InferenceMode inference;
  const bool widens = number == kLibTorch && !read_cpu().has_bfloat16();
  const std::int64_t heads = 8, tokens = state.range(0), width = state.range(1);
  const auto draw = [&] {
    const auto dtype = widens ? at::kFloat : at::kBFloat16;
    return at::randn({1, tokens, heads, width}, at::kFloat).to(dtype).transpose(1, 2);
  };
  const auto q = draw(), k = draw(), v = draw();
  const auto kernels = number == kLibTorch ? ops::NamedAttention{"LibTorch", nullptr}
                                           : ops::runnable_attention(number);
  state.SetLabel(kernels.name ? kernels.name : "");
  if (number != kLibTorch && !kernels.kernels) {
    state.SkipWithError("this CPU has no such instructions");
    return;
  }
  const auto attend = [&](const Tensor& queries) {
    return number == kLibTorch ? at::scaled_dot_product_attention(queries, k, v)
                               : ops::cpu::attend(queries, k, v, kernels.kernels).out_BHLD;
  };
  const auto few = q.narrow(2, 3, 7);
  const auto want =
      at::scaled_dot_product_attention(few.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat));
  if ((attend(few) - want).norm().item<float>() > 0.02 * want.norm().item<float>())
    state.SkipWithError("differs from float32");
  for (auto _ : state) benchmark::DoNotOptimize(attend(q));
  state.counters["GFLOP/s"] = benchmark::Counter(4e-9 * double(heads * tokens * tokens * width),
                                                 benchmark::Counter::kIsIterationInvariantRate);
}

void lengths(benchmark::internal::Benchmark* bench) {
  bench->Args({1536, 128})->Args({4608, 128})->Args({4096, 72});
  bench->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->MinTime(1);
}

BENCHMARK_CAPTURE(attention, libtorch, kLibTorch)->Apply(lengths);
BENCHMARK_CAPTURE(attention, avx2, 1)->Apply(lengths);
BENCHMARK_CAPTURE(attention, avx512, 2)->Apply(lengths);
BENCHMARK_CAPTURE(attention, avx512_bf16, 3)->Apply(lengths);
BENCHMARK_CAPTURE(attention, amx, 4)->Apply(lengths);

}  // namespace
}  // namespace braid
