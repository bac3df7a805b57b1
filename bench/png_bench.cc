// How long does a megapixel take to write and to read, and how large is the file?
#include <benchmark/benchmark.h>

#include <cmath>
#include <random>

#include "image/png.h"

namespace braid {
namespace {

constexpr int kSide = 1024;

// Slow waves and an edge, with noise of standard deviation `noise` levels.
std::vector<std::uint8_t> picture(double noise) {
  std::mt19937 random(1);
  std::normal_distribution<double> grain(0.0, 1.0);
  std::vector<std::uint8_t> rgb;
  for (int i = 0; i < kSide * kSide * 3; ++i) {
    const int x = i / 3 % kSide, y = i / 3 / kSide, c = i % 3;
    const double wave = 128 + 60 * std::sin(0.01 * x * (c + 1)) + 50 * std::cos(0.013 * y + c);
    const double edge = std::hypot(x - 500, y - 500) < 200 ? 40 : 0;
    rgb.push_back(std::uint8_t(std::clamp(wave + edge + noise * grain(random), 0.0, 255.0)));
  }
  return rgb;
}

void encode(benchmark::State& state) {
  const auto rgb = picture(double(state.range(0)));
  std::string png = encode_png(kSide, kSide, rgb);
  if (decode_png(png, "bench").rgb != rgb) state.SkipWithError("the picture changed");
  for (auto _ : state) png = encode_png(kSide, kSide, rgb);
  state.counters["bytes"] = double(png.size());
}
BENCHMARK(encode)->ArgName("noise")->Arg(0)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

void decode(benchmark::State& state) {
  const auto rgb = picture(double(state.range(0)));
  const auto png = encode_png(kSide, kSide, rgb);
  if (decode_png(png, "bench").rgb != rgb) state.SkipWithError("the picture changed");
  for (auto _ : state) benchmark::DoNotOptimize(decode_png(png, "bench"));
}
BENCHMARK(decode)->ArgName("noise")->Arg(0)->Arg(1)->Arg(4)->Unit(benchmark::kMillisecond);

}  // namespace
}  // namespace braid
