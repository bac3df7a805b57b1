// Convolutions in bands against their definition in float64: any size, several bands, views.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "ops/cpu/image.h"
#include "ops/cpu/pair_convolution.h"
#include "use_threads.h"

namespace braid::image_test {

struct Case {
  at::ScalarType dtype;
  std::int64_t batch, in, out, height, width;
};

// Bands of one row, of some rows, of all.
const ops::cpu::Band kBands[] = {
    {.bytes = 1, .fewest_rows = 1}, {.bytes = 1, .fewest_rows = 4}, {}};

class Images : public testing::TestWithParam<Case> {
 protected:
  Tensor draw(at::IntArrayRef shape, double scale = 1) {
    return (at::randn(shape, generator_, at::kFloat) * scale).to(GetParam().dtype);
  }
  Tensor image() {
    const auto& c = GetParam();
    return draw({c.batch, c.in, c.height, c.width}) + 2;
  }
  Convolution conv(std::int64_t kernel) {
    const auto& c = GetParam();
    return {.weight_OIKK = draw({c.out, c.in, kernel, kernel}, 0.1),
            .bias_O = draw({2 * c.out}).slice(0, 0, 2 * c.out, 2),
            .padding = kernel / 2};
  }
  GroupNormParts norm() {
    return {.weight_C = draw({GetParam().in}),
            .bias_C = draw({GetParam().in}),
            .groups = 2,
            .eps = 1e-6};
  }
  static Tensor exact(const Tensor& x) { return x.to(at::kDouble); }
  static Convolution exact(Convolution c) {
    c.weight_OIKK = exact(c.weight_OIKK);
    c.bias_O = exact(c.bias_O);
    return c;
  }
  static GroupNormParts exact(GroupNormParts n) {
    n.weight_C = exact(n.weight_C);
    n.bias_C = exact(n.bias_C);
    return n;
  }
  // bfloat16 also rounds the convolution's input if the CPU multiplies it. Normalising a group of
  // one number leaves the remainder of a cancellation.
  void expect_near(const Tensor& got, const Tensor& want) const {
    ASSERT_EQ(got.sizes(), want.sizes());
    ASSERT_EQ(got.scalar_type(), GetParam().dtype);
    const auto difference = (exact(got) - want).abs().max() / want.abs().max();
    EXPECT_LT(difference.item<double>(), GetParam().dtype == at::kFloat ? 1e-5 : 1.0 / 128);
  }

  at::Generator generator_ = at::detail::createCPUGenerator(5);
};

TEST_P(Images, Convolved) {
  for (const std::int64_t kernel : {1, 3}) {
    const auto x = image();
    const auto c = conv(kernel);
    ASSERT_TRUE(ops::cpu::convolves(x, c));
    for (const auto& band : kBands)
      expect_near(ops::cpu::convolve(x, c, band), ops::reference::convolve(exact(x), exact(c)));
  }
}

TEST_P(Images, Doubled) {
  const auto x = image();
  const auto c = conv(3);
  for (const auto& band : kBands)
    expect_near(ops::cpu::convolve_doubled(x, c, band),
                ops::reference::convolve_doubled(exact(x), exact(c)));
}

TEST_P(Images, Halved) {
  const auto& size = GetParam();
  if (size.height < 2 || size.width < 2) return;
  const auto x = image();
  auto c = conv(3);
  c.stride = 2;
  c.padding = 0;
  ASSERT_TRUE(ops::cpu::halves(x, c));
  const auto want = ops::reference::convolve_halved(exact(x), exact(c));
  EXPECT_EQ(want.size(2), size.height / 2);
  for (const auto& band : kBands) expect_near(ops::cpu::convolve_halved(x, c, band), want);
}

TEST_P(Images, Normed) {
  const auto x = image();
  const auto c = conv(3);
  const auto n = norm();
  const auto want = ops::reference::convolve_normed(exact(x), exact(n), exact(c));
  for (const auto& band : kBands) expect_near(ops::cpu::convolve_normed(x, n, c, {}, band), want);
  const auto turned = x.transpose(2, 3).contiguous().transpose(2, 3);  // same values, other strides
  expect_near(ops::cpu::convolve_normed(turned, n, c, {}), want);
}

TEST_P(Images, NormedPixelByPixel) {
  const auto x = image();
  const auto c = conv(3);
  const PixelNormParts n{.gamma_C = draw({GetParam().in})};
  const auto want = ops::reference::convolve_normed(
      exact(x), PixelNormParts{.gamma_C = exact(n.gamma_C)}, exact(c));
  for (const auto& band : kBands) expect_near(ops::cpu::convolve_normed(x, n, c, {}, band), want);
  const auto added = draw(want.sizes());
  const auto sum = want + exact(added);
  expect_near(
      ops::cpu::convolve_normed(
          x, n, c, ImageResidual{.x_BCHW = added, .memory = ImageResidual::Memory::kReused}),
      sum);
}

TEST_P(Images, NormedWithWhatIsAdded) {
  const auto x = image();
  const auto c = conv(3);
  const auto n = norm();
  const auto& size = GetParam();
  const auto added = draw({size.batch, size.out, size.height, size.width}), before = added.clone();
  const auto want = ops::reference::convolve_normed(exact(x), exact(n), exact(c),
                                                    ImageResidual{.x_BCHW = exact(added)});
  expect_near(ops::cpu::convolve_normed(x, n, c, ImageResidual{.x_BCHW = added}), want);
  EXPECT_TRUE(at::equal(added, before));
  const auto reused = ops::cpu::convolve_normed(
      x, n, c, ImageResidual{.x_BCHW = added, .memory = ImageResidual::Memory::kReused}, kBands[1]);
  expect_near(reused, want);
  EXPECT_EQ(reused.const_data_ptr(), added.const_data_ptr());
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, Images,
    testing::Values(Case{at::kFloat, 1, 2, 3, 1, 1}, Case{at::kFloat, 2, 6, 4, 5, 7},
                    Case{at::kBFloat16, 1, 8, 5, 9, 17}, Case{at::kFloat, 1, 4, 2, 19, 64},
                    Case{at::kBFloat16, 1, 2, 4, 17, 33},
                    // by Winograd's filtering: whole and partial tiles, more channels than a block
                    // of sums holds
                    Case{at::kFloat, 1, 32, 16, 16, 32}, Case{at::kFloat, 2, 18, 110, 17, 23},
                    Case{at::kBFloat16, 1, 32, 48, 16, 64}, Case{at::kBFloat16, 2, 260, 22, 19, 41},
                    Case{at::kBFloat16, 1, 16, 16, 37, 14}));

// Winograd's filtering and products of pairs are tested; LibTorch's convolutions may differ.
TEST(Images, DoNotDependOnBandsOrThreads) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = at::randn({1, 32, 37, 70}).to(dtype);
    const auto conv_of = [&](std::int64_t kernel, std::int64_t stride) {
      return Convolution{.weight_OIKK = at::randn({40, 32, kernel, kernel}).to(dtype),
                         .bias_O = at::randn({40}).to(dtype),
                         .stride = stride,
                         .padding = stride == 2 ? 0 : kernel / 2};
    };
    std::vector<Convolution> ours = {conv_of(3, 1)};
    if (const auto halving = conv_of(3, 2);
        dtype == at::kBFloat16 &&
        ops::cpu::PairConvolution::pays(halving.weight_OIKK.sizes(), ops::product_kernels()))
      ours.insert(ours.end(), {halving, conv_of(1, 1)});
    for (const auto& conv : ours) {
      const auto convolve = [&](int threads, const ops::cpu::Band& band) {
        const UseThreads use(threads);
        return conv.stride == 2 ? ops::cpu::convolve_halved(x, conv, band)
                                : ops::cpu::convolve(x, conv, band);
      };
      const auto want = convolve(1, {});
      for (const auto& band : kBands)
        EXPECT_TRUE(at::equal(convolve(3, band), want))
            << dtype << " " << band.bytes << " " << conv.weight_OIKK.sizes();
    }
  }
}

TEST(Images, RefuseWhatDoesNotFitTogether) {
  const auto x = at::randn({1, 8, 6, 6});
  const Convolution conv{
      .weight_OIKK = at::randn({4, 8, 3, 3}), .bias_O = at::zeros({4}), .padding = 1};
  const Convolution narrow{
      .weight_OIKK = at::randn({4, 4, 3, 3}), .bias_O = at::zeros({4}), .padding = 1};
  const GroupNormParts norm{
      .weight_C = at::ones({8}), .bias_C = at::zeros({8}), .groups = 2, .eps = 1e-6};
  const GroupNormParts of_less{
      .weight_C = at::ones({4}), .bias_C = at::zeros({4}), .groups = 2, .eps = 1e-6};
  EXPECT_ANY_THROW(ops::convolve(x, narrow));
  EXPECT_ANY_THROW(ops::convolve(x.narrow(1, 0, 1), conv));
  EXPECT_ANY_THROW(ops::convolve_normed(x, norm, narrow));
  EXPECT_ANY_THROW(ops::convolve_normed(x, of_less, conv));
  EXPECT_ANY_THROW(
      ops::convolve_normed(x, norm, conv, ImageResidual{.x_BCHW = at::zeros({1, 4, 5, 5})}));
  EXPECT_ANY_THROW(ops::convolve_normed(
      x, norm, conv, ImageResidual{.x_BCHW = at::zeros({1, 4, 6, 6}, at::kDouble)}));
}

TEST(Images, ThatChangeTheirSizeAreLeftToTheDefinition) {
  const auto x = at::randn({1, 2, 6, 6});
  const Convolution halves{
      .weight_OIKK = at::randn({2, 2, 3, 3}), .bias_O = at::zeros({2}), .stride = 2, .padding = 0};
  EXPECT_FALSE(ops::cpu::convolves(x, halves));
  EXPECT_EQ(ops::convolve(x, halves).size(2), 2);
}

}  // namespace braid::image_test
