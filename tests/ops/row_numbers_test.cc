// Numbers of operations on rows of tokens, one at a time in float64: what eps is for, and where
// results are rounded or clipped.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/ops.h"

namespace braid::row_numbers_test {

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16};

// A few roundings.
double limit_of(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-5 : 1.0 / 64; }

double number(const Tensor& x_LC, std::int64_t l, std::int64_t c) {
  return x_LC[l][c].item<double>();
}

// Where the variance is far below eps = 1e-6, near it and 0; around 0, 3 and 10,000.
TEST(ModulatedNorms, AddEpsToTheVariance) {
  constexpr std::int64_t kWidth = 30;
  for (const auto dtype : kDtypes) {
    const auto near_0 = at::randn({2, kWidth}) * at::tensor({1e-3f, 1e-5f}).unsqueeze(1);
    const auto constant = at::tensor({0.f, 3.f, 1e4f}).unsqueeze(1).expand({3, kWidth});
    const auto x = at::cat({near_0, constant}).to(dtype).unsqueeze(0);
    const auto drawn = at::randn({2, 1, 1, kWidth}).to(dtype);
    const Modulation m{.shift = drawn[0], .scale = drawn[1], .gate = {}};
    const auto got = ops::modulated_norm(x, m);
    for (std::int64_t l = 0; l < 5; ++l) {
      double mean = 0, variance = 0;
      for (std::int64_t c = 0; c < kWidth; ++c) mean += number(x[0], l, c) / kWidth;
      for (std::int64_t c = 0; c < kWidth; ++c)
        variance += std::pow(number(x[0], l, c) - mean, 2) / kWidth;
      for (std::int64_t c = 0; c < kWidth; ++c) {
        const double normed = (number(x[0], l, c) - mean) / std::sqrt(variance + 1e-6);
        const double want = normed * (1 + number(m.scale[0], 0, c)) + number(m.shift[0], 0, c);
        EXPECT_NEAR(number(got[0], l, c), want, limit_of(dtype) * (1 + std::abs(want)))
            << dtype << " " << l;
      }
    }
  }
}

TEST(HeadNorms, AddEpsToTheMeanOfSquares) {
  constexpr std::int64_t kWidth = 10;
  constexpr double kEps = 1e-6;
  for (const auto dtype : kDtypes) {
    const auto scales = at::tensor({0.f, 1e-3f, 1e-5f}).view({1, 3, 1, 1});
    const auto x = (at::randn({1, 3, 1, kWidth}) * scales).to(dtype);
    const auto weight = at::randn({kWidth}).to(dtype);
    const Rope unturned{.cos = at::ones({3, kWidth}), .sin = at::zeros({3, kWidth})};
    const std::array parts = {ops::NormedHeads{x, weight}};
    const auto turned = ops::normed_rotated(parts, kEps, unturned);
    for (const auto& got : {turned, ops::rms_norm(x, weight, kEps)})
      for (std::int64_t l = 0; l < 3; ++l) {
        double squares = 0;
        for (std::int64_t c = 0; c < kWidth; ++c)
          squares += std::pow(number(x[0][l], 0, c), 2) / kWidth;
        for (std::int64_t c = 0; c < kWidth; ++c) {
          const double want =
              number(x[0][l], 0, c) / std::sqrt(squares + kEps) * weight[c].item<double>();
          EXPECT_NEAR(number(got[0][l], 0, c), want, limit_of(dtype) * (1e-3 + std::abs(want)))
              << dtype << " " << l;
        }
      }
  }
}

// ----------------------------------------------------------------------------- what is rounded

// Rounds to `bits` significant bits, half to even.
double rounded(double x, int bits) {
  int exponent = 0;
  const double fraction = std::frexp(x, &exponent);
  return std::ldexp(std::nearbyint(std::ldexp(fraction, bits)), exponent - bits);
}

TEST(EulerSteps, RoundTheStepAndItsProductAsDiffusersDoes) {
  constexpr int kBits = 8;  // of bfloat16
  constexpr double kStep = -0.0123;
  const auto x = at::randn({1, 40, 8}).to(at::kBFloat16), v = at::randn({1, 40, 8}).to(x);
  const auto got = ops::euler_step(x, v, kStep).flatten();
  for (std::int64_t i = 0; i < x.numel(); ++i) {
    const auto number_of = [i](const Tensor& t) { return t.flatten()[i].item<double>(); };
    const double step = rounded(rounded(kStep, kBits) * number_of(v), kBits);
    EXPECT_EQ(number_of(got), rounded(number_of(x) + step, kBits)) << i;
  }
}

TEST(GatedResiduals, AreClippedInFloat16Alone) {
  const auto sum_of = [](at::ScalarType dtype) {
    const auto x = at::tensor({60000.f, -60000.f, 1.f}).view({1, 1, 3}).to(dtype);
    return ops::gated_residual(x, at::ones_like(x), x).flatten().to(at::kDouble);
  };
  EXPECT_TRUE(at::equal(sum_of(at::kHalf), at::tensor({65504., -65504., 2.}, at::kDouble)));
  EXPECT_GT(sum_of(at::kBFloat16)[0].item<double>(), 110000);
}

// Norms of float32 weights bring what they multiply to float32, and half ones to half.
TEST(RmsNorms, ReturnTheDtypeOfTheirWeight) {
  const auto x = at::randn({2, 3, 20});
  const auto want =
      x.to(at::kDouble) / (x.to(at::kDouble).square().mean(-1, true) + 1e-6).sqrt() * 0.5;
  for (const auto of_x : {at::kFloat, at::kHalf, at::kBFloat16})
    for (const auto of_weight : {at::kFloat, at::kHalf, at::kBFloat16}) {
      const auto got = ops::rms_norm(x.to(of_x), at::full({20}, 0.5, of_weight), 1e-6);
      EXPECT_EQ(got.scalar_type(), of_weight) << of_x;
      EXPECT_LT((got.to(at::kDouble) - want).abs().max().item<double>(), 1.0 / 64)
          << of_x << " " << of_weight;
    }
}

}  // namespace braid::row_numbers_test
