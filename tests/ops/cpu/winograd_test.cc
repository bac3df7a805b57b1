// Convolutions by Winograd's filtering against their definition in float64, by all kernels this
// machine can run.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "ops/cpu/winograd.h"

namespace braid::winograd_test {

using at::Tensor;
using ops::WinogradKernels;
using ops::WinogradSize;
using ops::cpu::PixelRun, ops::cpu::Range, ops::cpu::round_up, ops::cpu::Winograd;

struct Case {
  std::int64_t in, out, height, width;
};

// x [I H W], of which only pixels inside may be taken.
Winograd::Image image_of(const Tensor& x) {
  return {.height = x.size(1), .width = x.size(2), .take = [x](const PixelRun& run, float* to) {
            ASSERT_TRUE(run.row >= 0 && run.row < x.size(1) && run.column >= 0 && run.count > 0 &&
                        run.column + run.count <= x.size(2));
            const auto row = x[run.channel][run.row];
            std::copy_n(row.const_data_ptr<float>() + run.column, run.count, to);
          }};
}

class Winograds : public testing::TestWithParam<WinogradSize> {
 protected:
  struct Problem {
    Tensor x_IHW, weight_OI33, want_OHW;

    explicit Problem(const Case& c)
        : x_IHW(at::randn({c.in, c.height, c.width})), weight_OI33(at::randn({c.out, c.in, 3, 3})) {
      want_OHW =
          at::conv2d(x_IHW.unsqueeze(0).to(at::kDouble), weight_OI33.to(at::kDouble), {}, 1, 1)[0];
    }
  };

  // Largest error relative to the largest value.
  static double error_of(const Problem& p, const WinogradKernels& kernels) {
    Winograd winograd(p.weight_OI33, kernels);
    const auto tile = winograd.tile(), height = p.x_IHW.size(1), width = p.x_IHW.size(2);
    const auto y =
        at::zeros({p.weight_OI33.size(0), round_up(height, tile), round_up(width, tile)});
    const auto times = at::zeros_like(y);
    const auto add_run = [](const Tensor& t, const PixelRun& place, const auto& number) {
      auto* const run = t[place.channel][place.row].mutable_data_ptr<float>() + place.column;
      for (std::int64_t i = 0; i < place.count; ++i) run[i] += number(i);
    };
    // a band of one row of tiles, and the others
    for (const auto& rows : {Range{0, std::min(tile, height)}, Range{tile, height - tile}})
      if (rows.count > 0)
        winograd.convolve(image_of(p.x_IHW), rows,
                          {.put = [&](const PixelRun& place, const float* sums) {
                            add_run(y, place, [&](std::int64_t i) { return sums[i]; });
                            add_run(times, place, [](std::int64_t) { return 1.f; });
                          }});
    EXPECT_TRUE(times.eq(1).all().item<bool>()) << "a pixel is put once";
    const auto got = y.narrow(1, 0, height).narrow(2, 0, width).to(at::kDouble);
    return ((got - p.want_OHW).abs().max() / p.want_OHW.abs().max()).item<double>();
  }

  static double allowed() {
    const auto size = GetParam();
    return size == WinogradSize::kTwo ? 1e-6 : size == WinogradSize::kFour ? 3e-5 : 5e-5;
  }

  static void expect_exact(const Case& c, double allowed) {
    const Problem problem(c);
    for (int i = 0; const auto* kernels = ops::runnable_winograd(i, GetParam()); ++i)
      EXPECT_LT(error_of(problem, *kernels), allowed)
          << "kernels " << i << ", " << c.in << " to " << c.out << " channels, " << c.height
          << " x " << c.width;
  }
};

TEST_P(Winograds, EqualTheirDefinition) {
  for (const Case& c : {Case{1, 1, 1, 1}, Case{3, 2, 4, 5}, Case{7, 9, 13, 70}, Case{40, 33, 6, 3},
                        Case{300, 200, 9, 11}, Case{64, 130, 32, 34}})
    expect_exact(c, allowed());
}

class SlowWinograds : public Winograds {};

TEST_P(SlowWinograds, TakeMoreThanOneChunk) {
  // 192 tiles of 1516 channels and 36 points, 768 and 16 or 88 and 64: more than one chunk.
  expect_exact({1500, 16, 48, 64}, 2 * allowed());
}

TEST_P(Winograds, PayForLargeImagesOfManyChannels) {
  const auto& kernels = ops::winograd_kernels(GetParam());
  EXPECT_TRUE(Winograd::pays({128, 128, 3, 3}, 64, 64, kernels));
  EXPECT_FALSE(Winograd::pays({3, 128, 3, 3}, 64, 64, kernels));
  EXPECT_FALSE(Winograd::pays({128, 3, 3, 3}, 64, 64, kernels));
  EXPECT_FALSE(Winograd::pays({128, 128, 1, 1}, 64, 64, kernels));
  EXPECT_FALSE(Winograd::pays({128, 128, 3, 3}, 2, 2, kernels));
}

TEST_P(Winograds, RefuseBrokenTiles) {
  Winograd winograd(at::randn({4, 2, 3, 3}), ops::winograd_kernels(GetParam()));
  const auto nothing = [](const PixelRun&, const float*) {};
  const auto of = [&](Range rows) {
    winograd.convolve(image_of(at::zeros({2, 14, 9})), rows, {.put = nothing});
  };
  EXPECT_NO_THROW(of({12, 2}));
  EXPECT_ANY_THROW(of({13, 1}));
  EXPECT_ANY_THROW(of({12, 3}));
  EXPECT_ANY_THROW(of({12, 0}));
}

const auto kSizes = testing::Values(WinogradSize::kTwo, WinogradSize::kFour, WinogradSize::kSix);
INSTANTIATE_TEST_SUITE_P(Sizes, Winograds, kSizes);
INSTANTIATE_TEST_SUITE_P(Sizes, SlowWinograds, kSizes);

}  // namespace braid::winograd_test
