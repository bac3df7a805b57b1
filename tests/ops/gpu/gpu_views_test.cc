// Does what gpu_kernels_test.cc does for operands that are views: tables and weights of which a
// kernel reads rows, codes and sums that are slices of wider ones.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <array>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"
#include "weights/codes/int8.h"

namespace braid::gpu_views_test {

namespace gpu = ops::gpu;

class GpuViews : public testing::Test {
 protected:
  void SetUp() override {
    if (!kernel_device()) GTEST_SKIP() << "there is no GPU";
  }
  Tensor draw(at::IntArrayRef shape, at::ScalarType dtype = at::kFloat) {
    return at::randn(shape, generator_, at::kFloat).to(dtype).to(*kernel_device());
  }
  // The same numbers, with others between them.
  static Tensor spread(const Tensor& x) { return at::stack({x, -x}, -1).select(-1, 0); }
  static Tensor within_rows(const Tensor& x) {
    return at::cat({-x, x}, -1).narrow(-1, x.size(-1), x.size(-1));
  }

  at::Generator generator_ = at::detail::createCPUGenerator(13);
};

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16, at::kHalf};

TEST_F(GpuViews, OfRotaryTablesAndNormsAreReadAsTheyLie) {
  const Rope rope{.cos = draw({5, 24}), .sin = draw({5, 24})};
  for (const auto dtype : kDtypes) {
    const auto x = draw({2, 5, 3, 24}, dtype), weight = draw({24}, dtype);
    const std::array dense = {ops::NormedHeads{x.narrow(1, 0, 2), weight},
                              ops::NormedHeads{x.narrow(1, 2, 3), weight}};
    const auto want = gpu::normed_rotated(dense, 1e-6, rope);
    for (const auto& view : {&spread, &within_rows}) {
      const std::array parts = {ops::NormedHeads{x.narrow(1, 0, 2), view(weight)},
                                ops::NormedHeads{x.narrow(1, 2, 3), view(weight)}};
      EXPECT_TRUE(
          at::equal(gpu::normed_rotated(parts, 1e-6, {view(rope.cos), view(rope.sin)}), want))
          << dtype;
    }
  }
}

TEST_F(GpuViews, OfActivationsAreReadAsTheyLie) {
  for (const auto dtype : kDtypes) {
    const auto x = draw({2, 5, 24}, dtype), v = draw({2, 5, 24}, dtype);
    const auto gelu = gpu::gelu(x), step = gpu::euler_step(x, v, -0.25);
    for (const auto& view : {&spread, &within_rows}) {
      EXPECT_TRUE(at::equal(gpu::gelu(view(x)), gelu)) << dtype;
      EXPECT_TRUE(at::equal(gpu::euler_step(view(x), v, -0.25), step)) << dtype;
      EXPECT_TRUE(at::equal(gpu::euler_step(x, view(v), -0.25), step)) << dtype;
    }
    const auto turned = x.transpose(1, 2).contiguous().transpose(1, 2);
    EXPECT_TRUE(at::equal(gpu::gelu(turned), gelu)) << dtype;
  }
}

TEST_F(GpuViews, OfCodesScalesAndSumsAreReadAsTheyLie) {
  for (const auto dtype : kDtypes) {
    const auto codes = quantize_rows(draw({6, 24}).cpu(), Quantize::kInt8);
    const auto there = [](const Tensor& x) { return x.to(*kernel_device()); };
    const Matrix dense{.form = Quantize::kInt8,
                       .values_NC = there(codes.values_NC),
                       .scales_N1 = there(codes.scales_N1)};
    const auto want = at::empty({6, 24}, dense.values_NC.options().dtype(dtype)),
               got = at::empty_like(want);
    gpu::widen(dense, want);
    for (const auto& view : {&spread, &within_rows}) {
      auto some = dense;
      some.values_NC = view(dense.values_NC);
      some.scales_N1 = view(dense.scales_N1);
      gpu::widen(some, got);
      EXPECT_TRUE(at::equal(got, want)) << dtype;
    }
    const ops::ScaledSums y{.sums_MN = there(at::randint(-999, 999, {6, 24}, generator_, at::kInt)),
                            .token_scales_M1 = draw({6, 1}),
                            .row_scales_N1 = draw({24, 1}),
                            .bias_N = draw({24})};
    gpu::scale(y, want);
    for (const auto& view : {&spread, &within_rows}) {
      gpu::scale({view(y.sums_MN), view(y.token_scales_M1), view(y.row_scales_N1), view(*y.bias_N)},
                 got);
      EXPECT_TRUE(at::equal(got, want)) << dtype;
    }
  }
}

}  // namespace braid::gpu_views_test
