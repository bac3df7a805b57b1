// Convolutions by Winograd's filtering against their definition in float64, by all kernels that
// this machine can run.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>

#include "ops/cpu_winograd.h"

namespace braid {
namespace {

using at::Tensor;
using ops::WinogradKernels;
using ops::WinogradSize;
using ops::cpu::Winograd;

struct Case {
  std::int64_t in, out, height, width;
};

std::int64_t whole(std::int64_t length, std::int64_t tile) {
  return (length + tile - 1) / tile * tile;
}

// x [I H W] with zeros around it and at the end of its last tiles; what is read too far is no
// number.
Tensor framed(const Tensor& x, std::int64_t tile) {
  const auto height = whole(x.size(1), tile), width = whole(x.size(2), tile);
  const auto all =
      at::full({x.size(0), height + 2, width + 2 + WinogradKernels::kSlack}, std::nan(""));
  all.narrow(2, 0, width + 2).zero_();
  all.narrow(1, 1, x.size(1)).narrow(2, 1, x.size(2)).copy_(x);
  return all;
}

class Winograds : public testing::TestWithParam<WinogradSize> {
 protected:
  // Largest error, relative to the largest value.
  static double error_of(const Case& c, const WinogradKernels& kernels) {
    const auto x = at::randn({c.in, c.height, c.width});
    const auto weight = at::randn({c.out, c.in, 3, 3});
    Winograd winograd(weight, kernels);
    const auto tile = winograd.tile();
    const auto y = at::zeros({c.out, whole(c.height, tile), whole(c.width, tile)});
    const auto times = at::zeros_like(y);
    std::mutex mutex;
    winograd.convolve(framed(x, tile), [&](const Winograd::Place& p, const float* sums) {
      const std::lock_guard lock(mutex);
      const auto run = [&](const Tensor& t) {
        return t[p.channel][p.row].narrow(0, p.column, p.count);
      };
      run(y).copy_(at::from_blob(const_cast<float*>(sums), {p.count}));
      run(times).add_(1);
    });
    EXPECT_TRUE(times.eq(1).all().item<bool>()) << "a pixel is put once";
    const auto want =
        at::conv2d(x.unsqueeze(0).to(at::kDouble), weight.to(at::kDouble), {}, 1, 1)[0];
    const auto got = y.narrow(1, 0, c.height).narrow(2, 0, c.width).to(at::kDouble);
    return ((got - want).abs().max() / want.abs().max()).item<double>();
  }
};

TEST_P(Winograds, EqualTheirDefinition) {
  const auto allowed = GetParam() == WinogradSize::kTwo ? 1e-6 : 3e-5;
  for (int i = 0; const auto* kernels = ops::runnable_winograd(i, GetParam()); ++i)
    for (const Case& c : {Case{1, 1, 1, 1}, Case{3, 2, 4, 5}, Case{7, 9, 13, 70},
                          Case{40, 33, 6, 3}, Case{300, 200, 9, 11}, Case{64, 130, 64, 66}})
      EXPECT_LT(error_of(c, *kernels), allowed)
          << "kernels " << i << ", " << c.in << " to " << c.out << " channels, " << c.height
          << " x " << c.width;
}

TEST_P(Winograds, TakeMoreThanOneChunk) {
  // 384 tiles of 768 channels and 36 points, or 1536 of 16: more than are made at a time.
  for (int i = 0; const auto* kernels = ops::runnable_winograd(i, GetParam()); ++i)
    EXPECT_LT(error_of({384, 384, 64, 96}, *kernels), 3e-5) << "kernels " << i;
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
  const auto nothing = [](const Winograd::Place&, const float*) {};
  const auto of = [&](std::int64_t channels, std::int64_t height) {
    winograd.convolve(at::zeros({channels, height, 8 + 2 + WinogradKernels::kSlack}), nothing);
  };
  EXPECT_NO_THROW(of(2, 10));
  EXPECT_ANY_THROW(of(2, 11));
  EXPECT_ANY_THROW(of(3, 10));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Winograds,
                         testing::Values(WinogradSize::kTwo, WinogradSize::kFour));

}  // namespace
}  // namespace braid
