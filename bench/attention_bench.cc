// How fast is our attention beside LibTorch's? FLUX.1's heads and lengths, in bfloat16; LibTorch's
// in float32 where the processor has no instructions for bfloat16. The rate is of processor time,
// which others do not disturb much.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "base/cpu.h"
#include "ops/cpu/attention.h"

namespace braid {
namespace {

enum class Way { kLibTorch, kOurs };

void attention(benchmark::State& state, Way way) {
  const c10::InferenceMode inference;
  const bool widens = way == Way::kLibTorch && !read_cpu().has_bfloat16();
  const std::int64_t heads = 24, tokens = state.range(0), width = 128;
  const auto draw = [&] {
    const auto dtype = widens ? at::kFloat : at::kBFloat16;
    return at::randn({1, tokens, heads, width}, at::kFloat).to(dtype).transpose(1, 2);
  };
  const auto q = draw(), k = draw(), v = draw();
  if (way == Way::kOurs && !ops::cpu::attends(q, k, v)) {
    state.SkipWithError("this CPU attends by LibTorch's kernels");
    return;
  }
  const auto attend = [&](const Tensor& queries) {
    return way == Way::kOurs ? ops::cpu::attend(queries, k, v).out_BHLD
                             : at::scaled_dot_product_attention(queries, k, v);
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
  bench->Arg(1536)->Arg(4608);
  bench->Unit(benchmark::kMillisecond)->MeasureProcessCPUTime()->MinTime(1);
}

BENCHMARK_CAPTURE(attention, libtorch, Way::kLibTorch)->Apply(lengths);
BENCHMARK_CAPTURE(attention, ours, Way::kOurs)->Apply(lengths);

}  // namespace
}  // namespace braid
