// How long do the convolutions of FLUX.1's and Wan's autoencoders take, for a picture of 1024x1024
// in bfloat16? Items are operations of the definition, so Winograd's filtering exceeds the
// processor's peak.
#include <ATen/ATen.h>
#include <benchmark/benchmark.h>
#include <c10/core/InferenceMode.h>

#include "ops/image.h"

namespace braid {
namespace {

Convolution convolution(std::int64_t in, std::int64_t out, std::int64_t kernel) {
  return {.weight_OIKK = (at::randn({out, in, kernel, kernel}) / double(in)).to(at::kBFloat16),
          .bias_O = at::randn({out}).to(at::kBFloat16),
          .padding = kernel / 2};
}

// Equal to the definition, to three bits less than bfloat16 has.
void expect_near(benchmark::State& state, const Tensor& got, const Tensor& want) {
  const auto error = (got.to(at::kDouble) - want).abs().max() / want.abs().max();
  if (error.item<double>() > 1.0 / 64) state.SkipWithError("the result is wrong");
}

void count(benchmark::State& state, const Tensor& y, const Tensor& weight) {
  state.SetItemsProcessed(state.iterations() * y.numel() * 2 * weight[0].numel());
}

// In float64, for the definition.
Convolution exact(const Convolution& conv) {
  return {.weight_OIKK = conv.weight_OIKK.to(at::kDouble),
          .bias_O = conv.bias_O.to(at::kDouble),
          .stride = conv.stride,
          .padding = conv.padding};
}

GroupNormParts exact(const GroupNormParts& norm) {
  return {norm.weight_C.to(at::kDouble), norm.bias_C.to(at::kDouble), norm.groups, norm.eps};
}

PixelNormParts exact(const PixelNormParts& norm) { return {norm.gamma_C.to(at::kDouble)}; }

Tensor picture(std::int64_t channels, std::int64_t side) {
  return at::randn({1, channels, side, side}).to(at::kBFloat16);
}

template <class Norm>
void time_normed(benchmark::State& state, const Norm& norm, const Convolution& conv,
                 std::int64_t side) {
  const auto channels = conv.weight_OIKK.size(1);
  const auto small = picture(channels, 24), x = picture(channels, side);
  expect_near(state, ops::convolve_normed(small, norm, conv),
              ops::reference::convolve_normed(small.to(at::kDouble), exact(norm), exact(conv)));
  auto y = at::zeros({1, conv.weight_OIKK.size(0), side, side}, x.options());
  for (auto _ : state)
    y = ops::convolve_normed(x, norm, conv,
                             ImageResidual{.x_BCHW = y, .memory = ImageResidual::Memory::kReused});
  count(state, y, conv.weight_OIKK);
}

// Arguments: channels in and out, the picture's side.
void normed(benchmark::State& state) {
  const c10::InferenceMode no_autograd;
  const auto in = state.range(0);
  const GroupNormParts norm{.weight_C = at::ones({in}, at::kBFloat16),
                            .bias_C = at::zeros({in}, at::kBFloat16),
                            .groups = 32,
                            .eps = 1e-6};
  time_normed(state, norm, convolution(in, state.range(1), 3), state.range(2));
}

// Wan's norm.
void pixel_normed(benchmark::State& state) {
  const c10::InferenceMode no_autograd;
  const auto channels = state.range(0);
  const PixelNormParts norm{.gamma_C = at::ones({channels}, at::kBFloat16)};
  time_normed(state, norm, convolution(channels, channels, 3), state.range(1));
}

// Few channels come in, or go out.
void plain(benchmark::State& state) {
  const c10::InferenceMode no_autograd;
  const auto in = state.range(0);
  const auto conv = convolution(in, state.range(1), 3);
  const auto small = picture(in, 24), x = picture(in, state.range(2));
  expect_near(state, ops::convolve(small, conv),
              ops::reference::convolve(small.to(at::kDouble), exact(conv)));
  Tensor y;
  for (auto _ : state) y = ops::convolve(x, conv);
  count(state, y, conv.weight_OIKK);
}

void halved(benchmark::State& state) {
  const c10::InferenceMode no_autograd;
  const auto channels = state.range(0);
  auto conv = convolution(channels, channels, 3);
  conv.stride = 2;
  conv.padding = 0;
  const auto small = picture(channels, 24), x = picture(channels, state.range(1));
  expect_near(state, ops::convolve_halved(small, conv),
              ops::reference::convolve_halved(small.to(at::kDouble), exact(conv)));
  Tensor y;
  for (auto _ : state) y = ops::convolve_halved(x, conv);
  count(state, y, conv.weight_OIKK);
}

BENCHMARK(normed)
    ->Args({128, 128, 1024})
    ->Args({256, 256, 512})
    ->Args({512, 512, 256})
    ->Args({512, 512, 128})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(pixel_normed)
    ->Args({96, 1024})
    ->Args({192, 512})
    ->Args({384, 256})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(plain)
    ->Args({3, 128, 1024})
    ->Args({128, 3, 1024})
    ->Args({16, 512, 128})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);
BENCHMARK(halved)
    ->Args({128, 1024})
    ->Args({256, 512})
    ->Args({512, 256})
    ->MeasureProcessCPUTime()
    ->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
