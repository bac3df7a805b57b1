// GPU kernels against the definitions in float64. Built twice: for a GPU, and for the host
// (gpu_on_cpu.cc), where every machine can run it.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include "kernel_device.h"
#include "ops/gpu/gpu.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"
#include "weights/codes/rotation.h"

namespace braid::gpu_kernels_test {

namespace gpu = ops::gpu;

// Memory layouts of an operand's rows.
enum class Lie {
  kDense,
  kSlice,    // of wider rows, aligned to 16 bytes
  kShifted,  // of wider rows, offset by one number
  kRepeated  // all tokens share the same memory
};

struct Case {
  at::ScalarType dtype;
  std::int64_t batch, tokens, width;
  Lie lie;
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.dtype << " " << c.batch << "x" << c.tokens << "x" << c.width << " lie "
             << int(c.lie);
}

class GpuKernels : public testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    if (!kernel_device()) GTEST_SKIP() << "there is no GPU";
    // Uninitialised results are NaN, so that missing writes show.
    at::globalContext().setDeterministicAlgorithms(true, /*warn_only=*/true);
    at::globalContext().setDeterministicFillUninitializedMemory(true);
  }
  void TearDown() override { at::globalContext().setDeterministicAlgorithms(false, false); }

  static at::ScalarType dtype() { return GetParam().dtype; }
  static bool is_wide() { return dtype() == at::kFloat; }

  Tensor draw(at::IntArrayRef shape, double scale = 1) {
    const auto x = at::randn(shape, generator_, at::kFloat) * scale;
    return x.to(dtype()).to(*kernel_device());
  }
  Tensor lying(std::int64_t batch, std::int64_t tokens, std::int64_t width, double scale = 1) {
    switch (GetParam().lie) {
      case Lie::kDense:
        return draw({batch, tokens, width}, scale);
      case Lie::kSlice:
        return draw({batch, tokens, (width + 39) / 8 * 8}, scale).narrow(2, 16, width);
      case Lie::kShifted:
        return draw({batch, tokens, width + 3}, scale).narrow(2, 1, width);
      case Lie::kRepeated:
        return draw({batch, 1, width}, scale).expand({batch, tokens, width});
    }
    return {};
  }
  Tensor tokens(double scale = 1) {
    return lying(GetParam().batch, GetParam().tokens, GetParam().width, scale);
  }
  Modulation modulation(std::int64_t batch) {
    const auto all = draw({batch, 1, 3 * GetParam().width}).chunk(3, -1);
    return {.shift = all[0], .scale = all[1], .gate = all[2]};
  }
  static Tensor exact(const Tensor& x) { return x.cpu().to(at::kDouble); }
  static Modulation exact(const Modulation& m) {
    return {exact(m.shift), exact(m.scale), exact(m.gate)};
  }

  // Every number is exact up to one rounding of a float32 computation.
  static void expect_rounded_once(const Tensor& kernel, const Tensor& exact) {
    ASSERT_EQ(kernel.sizes(), exact.sizes());
    ASSERT_EQ(kernel.scalar_type(), dtype());
    const double half_unit = is_wide() ? 0 : dtype() == at::kHalf ? 0x1p-11 : 0x1p-8;
    const auto allowed = exact.abs() * half_unit + exact.abs().max().clamp_min(1e-3) * 2e-6;
    const auto off = (kernel.cpu().to(at::kDouble) - exact).abs();
    EXPECT_TRUE(off.le(allowed).all().item<bool>())
        << "off by up to " << (off / allowed).nan_to_num(1e9).max().item<double>()
        << " times what is allowed";
  }

  at::Generator generator_ = at::detail::createCPUGenerator(7);
};

TEST_P(GpuKernels, ModulatedNorm) {
  const auto x = tokens() + 3;
  const auto own = modulation(GetParam().batch), shared = modulation(1);
  for (const auto& m : {own, shared})
    expect_rounded_once(gpu::modulated_norm(x, m),
                        ops::reference::modulated_norm(exact(x), exact(m)));
}

TEST_P(GpuKernels, ModulatedNormOfRowsThatLie) {
  const auto x = tokens();
  const auto m = modulation(1);
  expect_rounded_once(gpu::modulated_norm(x, m),
                      ops::reference::modulated_norm(exact(x), exact(m)));
}

TEST_P(GpuKernels, GatedResidual) {
  const auto x = tokens(), y = tokens();
  const auto own = modulation(GetParam().batch).gate, shared = modulation(1).gate;
  for (const auto& gate : {own, shared})
    expect_rounded_once(gpu::gated_residual(x, gate, y),
                        ops::reference::gated_residual(exact(x), exact(gate), exact(y)));
}

// The norm is that of the sum as it is stored.
TEST_P(GpuKernels, GatedResidualNorm) {
  const auto x = tokens(), y = tokens();
  const auto own = modulation(GetParam().batch), shared = modulation(1);
  for (const auto& m : {own, shared}) {
    const auto got = gpu::gated_residual_norm(x, m.gate, y, m);
    expect_rounded_once(got.sum_BLC,
                        ops::reference::gated_residual(exact(x), exact(m.gate), exact(y)));
    EXPECT_TRUE(at::equal(got.sum_BLC, gpu::gated_residual(x, m.gate, y)));
    expect_rounded_once(got.normed.x, ops::reference::modulated_norm(exact(got.sum_BLC), exact(m)));
    if (GetParam().lie != Lie::kDense) continue;
    EXPECT_TRUE(at::equal(got.normed.x, gpu::modulated_norm(got.sum_BLC, m)));
  }
}

TEST_P(GpuKernels, Gelu) {
  const auto x = tokens(3);
  expect_rounded_once(gpu::gelu(x), ops::reference::gelu(exact(x)));
}

TEST_P(GpuKernels, JoinedGelu) {
  const auto x = tokens();
  const auto y = lying(GetParam().batch, GetParam().tokens, 4 * GetParam().width);
  expect_rounded_once(gpu::joined_gelu(x, y), ops::reference::joined_gelu(exact(x), exact(y)));
}

// Not compared with the CPU definition, where LibTorch rounds dt too.
TEST_P(GpuKernels, EulerStep) {
  const auto x = tokens(), v = tokens();
  const double dt = float(-0.0371);
  const auto product = (v.cpu().to(at::kFloat) * dt).to(dtype());
  const auto want = (x.cpu().to(at::kFloat) + product).to(dtype());
  EXPECT_TRUE(at::equal(gpu::euler_step(x, v, dt).cpu(), want));
}

TEST_P(GpuKernels, QuantizeRows) {
  const auto x = tokens(2).flatten(0, 1);
  for (const auto form : {Quantize::kInt8, Quantize::kFloat8}) {
    const auto got = gpu::quantize_rows(x, form), want = quantize_rows(x.cpu(), form);
    EXPECT_TRUE(at::equal(got.scales_N1.cpu(), want.scales_N1));
    EXPECT_TRUE(at::equal(got.values_NC.cpu(), want.values_NC));
  }
}

// Codes that a kernel writes in passing are those of the numbers that it would have written.
TEST_P(GpuKernels, CodesInPassingAreThoseOfTheNumbers) {
  const auto x = tokens(), y = tokens(2);
  const auto wide = lying(GetParam().batch, GetParam().tokens, 4 * GetParam().width, 2);
  const auto m = modulation(GetParam().batch);
  const auto expect_codes = [](const ops::LayerInput& got, const Tensor& numbers) {
    const auto want = quantize_rows(numbers.flatten(0, 1).cpu(), Quantize::kFloat8);
    ASSERT_TRUE(got.is_quantized());
    EXPECT_EQ(got.x.sizes(), numbers.sizes());
    EXPECT_TRUE(at::equal(got.scales_M1.cpu(), want.scales_N1));
    EXPECT_TRUE(at::equal(got.x.cpu().flatten(0, 1), want.values_NC));
  };
  expect_codes(gpu::modulated_norm_codes(x, m), gpu::modulated_norm(x, m));
  const auto both = gpu::gated_residual_norm_codes(x, m.gate, y, m);
  const auto want = gpu::gated_residual_norm(x, m.gate, y, m);
  EXPECT_TRUE(at::equal(both.sum_BLC, want.sum_BLC));
  expect_codes(both.normed, want.normed.x);
  expect_codes(gpu::gelu_codes(y), gpu::gelu(y));
  if (gpu::keeps_rows(x.size(-1) + wide.size(-1)))
    expect_codes(gpu::joined_gelu_codes(x, wide), gpu::joined_gelu(x, wide));
}

// The definition rotates on the CPU. Rows lie as in the case, so that vectors have 1 number, too.
TEST_P(GpuKernels, QuantizeRotatedRows) {
  const auto x = tokens(2).flatten(0, 1);
  for (const std::int64_t together : {4, 16, 64, 256}) {
    if (x.size(1) % together != 0 || !gpu::rotates_rows(x, together)) continue;
    const auto got = gpu::quantize_rows(x, Quantize::kInt8, together);
    const auto want = quantize_rows(rotated(x.cpu().to(at::kFloat), together), Quantize::kInt8);
    EXPECT_TRUE(at::equal(got.scales_N1.cpu(), want.scales_N1)) << together;
    EXPECT_TRUE(at::equal(got.values_NC.cpu(), want.values_NC)) << together;
  }
}

TEST_P(GpuKernels, Widen) {
  for (const auto form : {Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8}) {
    auto matrix = quantize_rows(tokens(2).flatten(0, 1).cpu(), form);
    const auto want = dequantize(matrix, dtype());
    const auto out = at::empty_like(want, at::TensorOptions(*kernel_device()));
    matrix.values_NC = matrix.values_NC.to(*kernel_device());
    matrix.scales_N1 = matrix.scales_N1.to(*kernel_device());
    gpu::widen(matrix, out);
    EXPECT_TRUE(at::equal(out.cpu(), want));
  }
}

TEST_P(GpuKernels, ScaleSums) {
  const auto rows = GetParam().batch * GetParam().tokens, width = GetParam().width;
  const auto floats = [&](at::IntArrayRef shape) { return at::rand(shape, generator_) * 1e-2; };
  const auto sums = at::randint(-(1 << 20), 1 << 20, {rows, width}, generator_, at::kInt);
  const auto token = floats({rows, 1}), row = floats({width, 1}), bias = floats({width});
  for (const bool has_bias : {true, false}) {
    auto want = (sums * token).to(dtype()).to(at::kFloat) * row.flatten();
    if (has_bias) want = want + bias;
    ops::ScaledSums y{.sums_MN = sums.to(*kernel_device()),
                      .token_scales_M1 = token.to(*kernel_device()),
                      .row_scales_N1 = row.to(*kernel_device()),
                      .bias_N = {}};
    if (has_bias) y.bias_N = bias.to(*kernel_device());
    const auto out = at::empty_like(sums, at::TensorOptions(*kernel_device()).dtype(dtype()));
    gpu::scale(y, out);
    EXPECT_TRUE(at::equal(out.cpu(), want.to(dtype())));
  }
}

// Widths that fill warps and vectors, miss them by one, or end in the middle of a block.
std::vector<Case> cases() {
  std::vector<Case> cases;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    for (const std::int64_t width : {1, 2, 7, 8, 9, 31, 64, 67, 128, 257, 768, 1032})
      cases.push_back({dtype, 2, 3, width, Lie::kDense});
    for (const auto lie : {Lie::kSlice, Lie::kShifted, Lie::kRepeated})
      for (const std::int64_t width : {24, 67, 520}) cases.push_back({dtype, 3, 2, width, lie});
    cases.push_back({dtype, 1, 2, 3072, Lie::kDense});
    cases.push_back({dtype, 1, 1, 3072, Lie::kShifted});
    cases.push_back({dtype, 1, 1, 4101, Lie::kDense});
  }
  return cases;
}
INSTANTIATE_TEST_SUITE_P(Shapes, GpuKernels, testing::ValuesIn(cases()));

}  // namespace braid::gpu_kernels_test
