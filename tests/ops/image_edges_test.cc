// Images in a user's hands: without variance, nearly black, far from 0, and convolutions that
// change their size.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "drawn.h"
#include "ops/image.h"

namespace braid::image_edges_test {

// Returns its input, so that norms can be seen.
Convolution identity(std::int64_t channels, at::ScalarType dtype) {
  return {.weight_OIKK = at::eye(channels).view({channels, channels, 1, 1}).to(dtype),
          .bias_O = at::zeros({channels}, dtype),
          .padding = 0};
}

double silu(double z) { return z / (1 + std::exp(-z)); }

// The group norm of one image [C H W], one number at a time.
Tensor normed_by_loops(const Tensor& x_CHW, const GroupNormParts& norm) {
  const auto x = x_CHW.to(at::kDouble).contiguous();
  const auto channels = x.size(0), each = channels / norm.groups, pixels = x[0].numel();
  auto y = at::empty_like(x);
  const auto* const from = x.const_data_ptr<double>();
  auto* const to = y.mutable_data_ptr<double>();
  for (std::int64_t g = 0; g < norm.groups; ++g) {
    const auto begin = g * each * pixels, end = (g + 1) * each * pixels;
    double mean = 0, variance = 0;
    for (auto i = begin; i < end; ++i) mean += from[i] / double(end - begin);
    for (auto i = begin; i < end; ++i)
      variance += (from[i] - mean) * (from[i] - mean) / double(end - begin);
    for (auto i = begin; i < end; ++i) {
      const double weight = norm.weight_C[i / pixels].item<double>(),
                   bias = norm.bias_C[i / pixels].item<double>();
      to[i] = silu((from[i] - mean) / std::sqrt(variance + norm.eps) * weight + bias);
    }
  }
  return y;
}

// Rows of different brightness: a group's variance is mostly between its rows.
TEST(GroupNorms, OfOddImagesAreThoseOfTheFormula) {
  const GroupNormParts norm{
      .weight_C = draw_floats({6}, 22), .bias_C = draw_floats({6}, 23), .groups = 3, .eps = 1e-6};
  const auto noise = draw_floats({6, 5, 7});
  const auto rows = at::arange(5, at::kFloat).view({1, 5, 1});
  for (const auto& [name, x] : {std::pair("black", at::zeros({6, 5, 7})),
                                {"grey", at::full({6, 5, 7}, 0.5)},
                                {"nearly black", noise * 1e-4},
                                {"of bright and dark rows", noise + 10 * rows},
                                {"far from 0", noise + 100}}) {
    const auto got = ops::convolve_normed(x.unsqueeze(0), norm, identity(6, at::kFloat))[0];
    const auto want = normed_by_loops(x, norm);
    // what has no variance is multiplied by 1 / sqrt(eps) = 1000, and the mean subtracted
    EXPECT_LT((got - want).abs().max().item<double>(), 1e-3) << name;
  }
}

// Wan's norm of a pixel without any colour divides by 1e-12 instead of 0.
TEST(PixelNorms, LeaveBlackBlack) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    auto x = draw_floats({1, 4, 3, 3}).to(dtype);
    x.select(2, 1).zero_();
    const PixelNormParts norm{.gamma_C = draw_floats({4}, 24).to(dtype)};
    const auto got = ops::pixel_norm(x, norm);
    EXPECT_EQ(got.select(2, 1).abs().sum().item<float>(), 0) << dtype;
    EXPECT_TRUE(got.isfinite().all().item<bool>()) << dtype;
    // each of the others has the length of gamma's share in sqrt(C)
    const auto wide = x.to(at::kDouble);
    const auto want = wide / wide.norm(2, {1}, true).clamp_min(1e-12) * 2 *
                      norm.gamma_C.to(at::kDouble).view({4, 1, 1});
    EXPECT_LT((got.to(at::kDouble) - want).abs().max().item<double>(),
              dtype == at::kFloat ? 1e-5 : 1.0 / 16);
  }
}

TEST(Convolutions, ThatShrinkOrGrowTheImageEqualTheirDefinition) {
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto& [kernel, padding] : {std::pair(3, 0), {1, 1}, {5, 1}, {5, 2}, {3, 2}}) {
      const auto x = draw_floats({2, 3, 9, 8}).to(dtype);
      const Convolution conv{.weight_OIKK = draw_floats({4, 3, kernel, kernel}, 25).to(dtype),
                             .bias_O = draw_floats({4}, 26).to(dtype),
                             .padding = padding};
      const auto got = ops::convolve(x, conv);
      ASSERT_EQ(got.sizes(), at::IntArrayRef({2, 4, 9 + 2 * padding - kernel + 1,
                                              8 + 2 * padding - kernel + 1}));
      const auto want = at::conv2d(x.to(at::kDouble), conv.weight_OIKK.to(at::kDouble),
                                   conv.bias_O.to(at::kDouble), 1, padding);
      const auto error = (got.to(at::kDouble) - want).abs().max() / want.abs().max();
      EXPECT_LT(error.item<double>(), dtype == at::kFloat ? 1e-5 : 1.0 / 128)
          << kernel << " " << padding;
    }
}

// LibTorch's convolutions in bfloat16 leave rows unwritten where a strided result is one column.
TEST(Convolutions, HalveImagesOfAnyWidth) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const std::int64_t width : {2, 3, 4, 5})
      for (const std::int64_t height : {2, 9, 10, 23, 40}) {
        const auto x = draw_floats({2, 7, height, width}).to(dtype);
        const Convolution conv{.weight_OIKK = draw_floats({16, 7, 3, 3}, 33).to(dtype),
                               .bias_O = draw_floats({16}, 34).to(dtype),
                               .stride = 2,
                               .padding = 0};
        const auto want =
            at::conv2d(at::constant_pad_nd(x.to(at::kDouble), {0, 1, 0, 1}),
                       conv.weight_OIKK.to(at::kDouble), conv.bias_O.to(at::kDouble), 2);
        ASSERT_EQ(want.size(2), height / 2);
        for (const auto& got :
             {ops::convolve_halved(x, conv), ops::reference::convolve_halved(x, conv)}) {
          ASSERT_EQ(got.sizes(), want.sizes());
          const auto error = (got.to(at::kDouble) - want).abs().max() / want.abs().max();
          EXPECT_LT(error.item<double>(), dtype == at::kFloat ? 1e-5 : 1.0 / 128)
              << dtype << " " << width << " " << height;
        }
      }
}

// A picture's result does not depend on the others of its batch.
TEST(Convolutions, KeepWhatIsNoNumberInItsPicture) {
  const auto x = draw_floats({3, 16, 12, 20});
  auto odd = x.clone();
  odd[1][3][4][5] = NAN;
  const Convolution conv{.weight_OIKK = draw_floats({16, 16, 3, 3}, 27),
                         .bias_O = draw_floats({16}, 28),
                         .padding = 1};
  const GroupNormParts norm{
      .weight_C = draw_floats({16}, 29), .bias_C = draw_floats({16}, 30), .groups = 4, .eps = 1e-6};
  const auto plain = ops::convolve(odd, conv), normed = ops::convolve_normed(odd, norm, conv),
             doubled = ops::convolve_doubled(odd, conv);
  const auto halved = ops::convolve_halved(
      odd, {.weight_OIKK = conv.weight_OIKK, .bias_O = conv.bias_O, .stride = 2, .padding = 0});
  for (const auto& got : {plain, normed, doubled, halved}) {
    EXPECT_TRUE(got[1].isnan().any().item<bool>());
    EXPECT_FALSE(got[0].isnan().any().item<bool>());
    EXPECT_FALSE(got[2].isnan().any().item<bool>());
  }
  EXPECT_TRUE(at::equal(plain[2], ops::convolve(x, conv)[2]));
}

TEST(Convolutions, LeaveTheirInputsAsTheyAre) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kDouble}) {
    const auto x = draw_floats({1, 4, 6, 7}).to(dtype), before = x.clone();
    const auto added = draw_floats({1, 4, 6, 7}, 31).to(dtype), added_before = added.clone();
    const Convolution conv{.weight_OIKK = draw_floats({4, 4, 3, 3}, 32).to(dtype),
                           .bias_O = draw_floats({4}, 33).to(dtype),
                           .padding = 1};
    const GroupNormParts groups{.weight_C = at::ones({4}, dtype),
                                .bias_C = at::zeros({4}, dtype),
                                .groups = 2,
                                .eps = 1e-6};
    const PixelNormParts pixels{.gamma_C = at::ones({4}, dtype)};
    (void)ops::convolve(x, conv);
    (void)ops::convolve_doubled(x, conv);
    (void)ops::convolve_normed(x, groups, conv, ImageResidual{.x_BCHW = added});
    (void)ops::convolve_normed(x, pixels, conv, ImageResidual{.x_BCHW = added});
    (void)ops::pixel_norm(x, pixels);
    EXPECT_TRUE(at::equal(x, before)) << dtype;
    EXPECT_TRUE(at::equal(added, added_before)) << dtype;
  }
}

}  // namespace braid::image_edges_test
