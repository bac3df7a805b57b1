// Rotary tables and heads: against the formula, written out in double precision.
#include "nn/rope.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "nn/attention.h"

namespace braid::rope_test {

TEST(RopeTable, HoldsTheAnglesOfEveryAxisTwice) {
  const auto ids = at::tensor({0.f, 3.f, 5.f, 0.f, 1000.f, 7.f}).view({2, 3});
  const RopeAxes axes{.widths = {2, 4, 6}};
  const auto rope = rope_table(ids, axes);
  ASSERT_EQ(rope.cos.sizes(), at::IntArrayRef({2, 12}));
  std::int64_t column = 0;
  for (std::size_t a = 0; a < axes.widths.size(); ++a)
    for (std::int64_t k = 0; k < axes.widths[a]; ++k, ++column)
      for (std::int64_t row = 0; row < 2; ++row) {
        const double frequency = std::pow(10000.0, -double(k / 2 * 2) / double(axes.widths[a]));
        const double angle = ids[row][std::int64_t(a)].item<double>() * frequency;
        EXPECT_FLOAT_EQ(rope.cos[row][column].item<float>(), float(std::cos(angle)));
        EXPECT_FLOAT_EQ(rope.sin[row][column].item<float>(), float(std::sin(angle)));
      }
}

TEST(RopeTable, RoundsAnglesFirstWhereItIsAsked) {
  const auto ids = at::tensor({1023}, at::kLong).unsqueeze(1);
  const double angle = 1023 * std::pow(256.0, -2.0 / 48);
  const auto cosine = [&](at::ScalarType angles) {
    const auto rope = rope_table(ids, {.widths = {48}, .theta = 256, .angles = angles});
    return rope.cos[0][2].item<float>();
  };
  EXPECT_FLOAT_EQ(cosine(at::kDouble), float(std::cos(angle)));
  EXPECT_FLOAT_EQ(cosine(at::kFloat), float(std::cos(double(float(angle)))));
  EXPECT_GT(std::abs(cosine(at::kFloat) - cosine(at::kDouble)), 5e-6);
}

TEST(Rotate, TurnsPairsAndKeepsLengths) {
  const auto x = at::randn({2, 3, 5, 8});
  const auto rope = rope_table(at::arange(3, at::kFloat).unsqueeze(1), {.widths = {8}});
  const auto y = ops::rotate(x, rope);
  EXPECT_TRUE(at::allclose(y.select(1, 0), x.select(1, 0))) << "position 0 turns nothing";
  EXPECT_TRUE(at::allclose(y.norm(2, -1), x.norm(2, -1), 1e-5, 1e-6));
  const auto pair = y[1][2][4].narrow(0, 0, 2), from = x[1][2][4].narrow(0, 0, 2);
  const double angle = 2;  // the first frequency is 1
  const double expected =
      from[0].item<double>() * std::cos(angle) - from[1].item<double>() * std::sin(angle);
  EXPECT_NEAR(pair[0].item<double>(), expected, 1e-6);
}

TEST(Rotate, ReturnsTheDtypeItGot) {
  const auto rope = rope_table(at::arange(3, at::kFloat).unsqueeze(1), {.widths = {8}});
  EXPECT_EQ(ops::rotate(at::randn({1, 3, 1, 8}).to(at::kBFloat16), rope).scalar_type(),
            at::kBFloat16);
}

TEST(HalfSplitRope, HoldsEveryAngleOnceInTheDtypeOfTheActivations) {
  const auto positions = at::tensor({0, 3, 511}, at::kLong);
  const auto rope = half_split_rope(positions, 8, 1e6, at::kFloat);
  ASSERT_EQ(rope.cos.sizes(), at::IntArrayRef({3, 4}));
  for (std::int64_t row = 0; row < 3; ++row)
    for (std::int64_t k = 0; k < 4; ++k) {
      const double angle = positions[row].item<double>() * std::pow(1e6, -double(2 * k) / 8);
      EXPECT_NEAR(rope.cos[row][k].item<float>(), std::cos(angle), 3e-5) << "an ulp of 511";
      EXPECT_NEAR(rope.sin[row][k].item<float>(), std::sin(angle), 3e-5);
    }
  const auto rounded = half_split_rope(positions, 8, 1e6, at::kBFloat16);
  EXPECT_TRUE(at::equal(rounded.cos, rope.cos.to(at::kBFloat16)));
  EXPECT_TRUE(at::equal(rounded.sin, rope.sin.to(at::kBFloat16)));
}

TEST(AttendTokens, EqualsSoftmaxWrittenOut) {
  const std::int64_t L = 7, H = 3, D = 4;
  const auto q = at::randn({2, L, H, D}), k = at::randn({2, L, H, D}), v = at::randn({2, L, H, D});
  const auto got = attend_tokens(ops::attention, q, k, v);
  const auto scores = at::einsum("blhd,bmhd->bhlm", {q, k}) / std::sqrt(double(D));
  const auto want = at::einsum("bhlm,bmhd->blhd", {at::softmax(scores, -1), v}).flatten(2);
  EXPECT_EQ(got.sizes(), at::IntArrayRef({2, L, H * D}));
  EXPECT_TRUE(at::allclose(got, want, 1e-5, 1e-6));
}

}  // namespace braid::rope_test
