// Does what gpu_kernels_test.cc does for inputs that are large, empty, NaN, or do not fit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"
#include "ops/gpu/launch.h"
#include "weights/codes/int8.h"

namespace braid::gpu_edges_test {

namespace gpu = ops::gpu;

class GpuEdges : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel_device()) GTEST_SKIP() << "there is no GPU";
  }
  static at::TensorOptions there(at::ScalarType dtype) {
    return at::TensorOptions(dtype).device(*kernel_device());
  }
};

TEST_F(GpuEdges, TheWidestRowIsNormedAndQuantized) {
  const auto x = at::linspace(-2, 2, gpu::kWidestRow, there(at::kFloat)).view({1, 1, -1});
  const auto zero = at::zeros_like(x);
  const auto got = gpu::modulated_norm(x, {.shift = zero, .scale = zero, .gate = {}});
  const auto want = at::layer_norm(x.to(at::kDouble), {x.size(-1)}, {}, {}, 1e-6);
  EXPECT_LE((got - want).abs().max().item<double>(), 2e-6);
  for (const auto form : {Quantize::kInt8, Quantize::kFloat8}) {
    const auto codes = quantize_rows(x[0].cpu(), form).values_NC;
    EXPECT_TRUE(at::equal(gpu::quantize_rows(x[0], form).values_NC.cpu(), codes));
  }
}

TEST_F(GpuEdges, NothingIsStartedForNothing) {
  const auto x = at::empty({2, 0, 8}, there(at::kFloat)), m = at::zeros({2, 1, 8}, x.options());
  EXPECT_EQ(gpu::modulated_norm(x, {.shift = m, .scale = m, .gate = m}).sizes(), x.sizes());
  EXPECT_EQ(gpu::gated_residual(x, m, x).sizes(), x.sizes());
  EXPECT_EQ(gpu::gated_residual_norm(x, m, x, {.shift = m, .scale = m, .gate = m}).normed.x.sizes(),
            x.sizes());
  EXPECT_EQ(gpu::gelu(x).sizes(), x.sizes());
  EXPECT_EQ(gpu::joined_gelu(x, x).sizes(), (at::IntArrayRef{2, 0, 16}));
  EXPECT_EQ(gpu::quantize_rows(x[0], Quantize::kInt8).scales_N1.size(0), 0);
}

TEST_F(GpuEdges, Float16IsClippedToItsFiniteRangeAndKeepsWhatIsNoNumber) {
  const auto x = at::tensor({65000.f, -65000.f, INFINITY, NAN, 1.f, 2.f, 3.f, 4.f})
                     .to(there(at::kHalf))
                     .view({1, 1, 8});
  const auto one = at::ones({1, 1, 8}, x.options());
  const auto sum = gpu::gated_residual(x, one, x).cpu().flatten();
  EXPECT_EQ(sum[0].item<float>(), 65504);
  EXPECT_EQ(sum[1].item<float>(), -65504);
  EXPECT_EQ(sum[2].item<float>(), 65504);
  EXPECT_TRUE(std::isnan(sum[3].item<float>()));
  const auto wide =
      gpu::gated_residual(x.to(at::kBFloat16), one.to(at::kBFloat16), x.to(at::kBFloat16));
  EXPECT_GT(wide.cpu().flatten()[0].item<float>(), 65504);
  EXPECT_TRUE(std::isnan(wide.cpu().flatten()[3].item<float>()));
}

TEST_F(GpuEdges, GeluIsExactFarFromZero) {
  const auto x =
      at::tensor({-1e30f, -100.f, 0.f, 20.f, 1e30f, INFINITY, NAN}).to(there(at::kFloat));
  const auto y = gpu::gelu(x.view({1, 7})).cpu().flatten(), at = x.cpu();
  for (const int i : {2, 3, 4, 5}) EXPECT_EQ(y[i].item<float>(), at[i].item<float>());
  for (const int i : {0, 1}) EXPECT_EQ(y[i].item<float>(), 0);
  EXPECT_TRUE(std::isnan(y[6].item<float>()));
}

// Codes of float8 reach further down than those of int8: only a scale below any normal is raised.
TEST_F(GpuEdges, Float8KeepsSmallRows) {
  const auto x = at::tensor({448e-9f, -224e-9f, 14e-9f, 0.f}).to(there(at::kFloat)).view({1, 4});
  const auto got = gpu::quantize_rows(x, Quantize::kFloat8);
  EXPECT_NEAR(got.scales_N1.item<double>(), 1e-9, 1e-15);
  const auto codes = at::tensor({448.f, -224.f, 14.f, 0.f}).to(at::kFloat8_e4m3fn).view(at::kByte);
  EXPECT_TRUE(at::equal(got.values_NC.cpu().flatten(), codes));
}

// NVIDIA's own NaN is 0x7fffffff: rounded like a number, its bits would become those of -0.
TEST_F(GpuEdges, NaNsOfAllBitsStayNaNs) {
  const auto nans = at::tensor({0x7fffffff, -1, 0x7fc00000, 0x7fffff00}, at::kInt);
  const ops::ScaledSums y{.sums_MN = at::ones({1, 4}, there(at::kInt)),
                          .token_scales_M1 = at::ones({1, 1}, there(at::kFloat)),
                          .row_scales_N1 = at::ones({4, 1}, there(at::kFloat)),
                          .bias_N = nans.view(at::kFloat).to(*kernel_device())};
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto got = at::zeros({1, 4}, there(dtype));
    gpu::scale(y, got);
    EXPECT_TRUE(got.isnan().all().item<bool>()) << dtype << got;
  }
}

TEST_F(GpuEdges, ARowWithWhatIsNoNumberSaysSoInItsScale) {
  auto x = at::ones({2, 40}, at::kFloat);
  x[1][33] = NAN;
  for (const auto form : {Quantize::kInt8, Quantize::kFloat8}) {
    const auto scales = gpu::quantize_rows(x.to(*kernel_device()), form).scales_N1.cpu();
    EXPECT_FALSE(std::isnan(scales[0].item<float>()));
    EXPECT_TRUE(std::isnan(scales[1].item<float>()));
  }
}

// A scale of 1 leaves these all 16-bit numbers that have codes, ties and subnormals.
TEST_F(GpuEdges, Float8IsRoundedAsLibTorchRounds) {
  const auto bits = at::arange(0, 65'536, at::kInt).to(at::kShort);
  auto x = bits.view(at::kBFloat16).to(at::kFloat);
  x = at::where(x.abs() <= 448, x, at::zeros_like(x)).view({16, 4096});
  x.select(1, 0).fill_(448);
  const auto got = gpu::quantize_rows(x.to(*kernel_device()), Quantize::kFloat8);
  EXPECT_TRUE(at::equal(got.scales_N1.cpu(), at::ones({16, 1}, at::kFloat)));
  EXPECT_TRUE(at::equal(got.values_NC.cpu(), x.to(at::kFloat8_e4m3fn).view(at::kByte)));
}

}  // namespace braid::gpu_edges_test
