// CPU kernels against the definitions in float64, and how far the definitions' own rounding is from
// these.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "ops/cpu/cpu.h"
#include "ops/reference.h"

namespace braid::kernels_test {

struct Case {
  at::ScalarType dtype;
  std::int64_t batch, tokens, width;
};

class Kernels : public testing::TestWithParam<Case> {
 protected:
  Tensor draw(at::IntArrayRef shape, double scale = 1) {
    return (at::randn(shape, generator_, at::kFloat) * scale).to(GetParam().dtype);
  }
  Tensor tokens() { return draw({GetParam().batch, GetParam().tokens, GetParam().width}); }
  Modulation modulation() {
    const auto all = draw({GetParam().batch, 1, 3 * GetParam().width}).chunk(3, -1);
    return {.shift = all[0], .scale = all[1], .gate = all[2]};
  }
  static Modulation exact(const Modulation& m) {
    return {m.shift.to(at::kDouble), m.scale.to(at::kDouble), m.gate.to(at::kDouble)};
  }
  // Largest difference relative to the largest value: units in the last place of the dtype, a few
  // for float32, whose order of summation depends on the processor.
  void expect_near(const Tensor& kernel, const Tensor& exact, int roundings = 1) const {
    ASSERT_EQ(kernel.sizes(), exact.sizes());
    EXPECT_EQ(kernel.scalar_type(), GetParam().dtype);
    const auto difference =
        (kernel.to(at::kDouble) - exact).abs().max() / exact.abs().max().clamp_min(1e-30);
    const auto limit = GetParam().dtype == at::kFloat ? 4e-6 : 1.0 / 256;
    EXPECT_LE(difference.item<double>(), roundings * limit);
  }

  at::Generator generator_ = at::detail::createCPUGenerator(7);
};

TEST_P(Kernels, ModulatedNorm) {
  const auto x = tokens() + 3;
  const auto m = modulation();
  expect_near(ops::cpu::modulated_norm(x, m),
              ops::reference::modulated_norm(x.to(at::kDouble), exact(m)));
}

TEST_P(Kernels, GatedResidual) {
  const auto x = tokens(), y = tokens(), gate = modulation().gate;
  expect_near(
      ops::cpu::gated_residual(x, gate, y),
      ops::reference::gated_residual(x.to(at::kDouble), gate.to(at::kDouble), y.to(at::kDouble)));
}

TEST_P(Kernels, Gelu) {
  const auto x = tokens() * 3;
  expect_near(ops::cpu::gelu(x), ops::reference::gelu(x.to(at::kDouble)));
}

// Views into a wider tensor, as in the models.
TEST_P(Kernels, JoinedGelu) {
  const auto wide = draw({GetParam().batch, GetParam().tokens, 5 * GetParam().width});
  const auto x = wide.narrow(2, 0, GetParam().width);
  const auto y = wide.narrow(2, GetParam().width, 4 * GetParam().width);
  expect_near(ops::cpu::joined_gelu(x, y),
              ops::reference::joined_gelu(x.to(at::kDouble), y.to(at::kDouble)));
}

TEST_P(Kernels, NormedRotated) {
  constexpr std::int64_t kHeads = 3;
  const auto head = 2 * ((GetParam().width + 1) / 2);
  const auto heads_of = [&](std::int64_t tokens) {
    const auto qkv = draw({GetParam().batch, tokens, 3 * kHeads * head}, 5);
    return qkv.narrow(2, kHeads * head, kHeads * head).unflatten(-1, {-1, head});
  };
  const std::array parts = {
      ops::NormedHeads{heads_of(GetParam().tokens), draw({head})},
      ops::NormedHeads{heads_of(2), draw({head})},
  };
  const auto angles =
      at::randn({GetParam().tokens + 2, head / 2}, generator_, at::kDouble).repeat_interleave(2, 1);
  const Rope rope{.cos = angles.cos().to(at::kFloat), .sin = angles.sin().to(at::kFloat)};
  std::vector<Tensor> normed;
  for (const auto& part : parts) {
    const auto x = part.x_BLHD.to(at::kDouble);
    normed.push_back(x / (x.square().mean(-1, true) + 1e-6).sqrt() * part.weight_D.to(at::kDouble));
  }
  const auto x = at::cat(normed, 1).unflatten(-1, {-1, 2});
  const auto turned = at::stack({-x.select(-1, 1), x.select(-1, 0)}, -1);
  const auto want = x.flatten(-2) * rope.cos.to(at::kDouble).unsqueeze(1) +
                    turned.flatten(-2) * rope.sin.to(at::kDouble).unsqueeze(1);
  expect_near(ops::cpu::normed_rotated(parts, 1e-6, rope), want);
}

// Halves of a wider tensor, as from fused layers.
TEST_P(Kernels, Swiglu) {
  const auto halves =
      draw({GetParam().batch, GetParam().tokens, 2 * GetParam().width}, 3).chunk(2, -1);
  expect_near(ops::cpu::swiglu(halves[0], halves[1]),
              ops::reference::swiglu(halves[0].to(at::kDouble), halves[1].to(at::kDouble)));
}

TEST_P(Kernels, JoinedSwiglu) {
  const auto wide = draw({GetParam().batch, GetParam().tokens, 7 * GetParam().width}, 3);
  const auto x = wide.narrow(2, 0, GetParam().width);
  const auto gate = wide.narrow(2, GetParam().width, 3 * GetParam().width);
  const auto up = wide.narrow(2, 4 * GetParam().width, 3 * GetParam().width);
  expect_near(
      ops::cpu::joined_swiglu(x, gate, up),
      ops::reference::joined_swiglu(x.to(at::kDouble), gate.to(at::kDouble), up.to(at::kDouble)));
}

TEST_P(Kernels, LlamaRmsNorm) {
  const auto x = tokens() * 2, weight = draw({GetParam().width}) + 1;
  const auto exact_x = x.to(at::kDouble), exact_weight = weight.to(at::kDouble);
  const auto want = exact_x / (exact_x.square().mean(-1, true) + 1e-2).sqrt() * exact_weight;
  expect_near(ops::cpu::llama_rms_norm(x, weight, 1e-2), want, 2);
  EXPECT_TRUE(at::allclose(ops::reference::llama_rms_norm(exact_x, exact_weight, 1e-2), want));
}

TEST_P(Kernels, ZeroCentredRmsNorm) {
  const auto x = tokens() * 2;
  const auto weight = draw({GetParam().width}).to(at::kFloat);
  const auto exact_x = x.to(at::kDouble), factor = weight.to(at::kDouble) + 1;
  const auto want = exact_x / (exact_x.square().mean(-1, true) + 1e-2).sqrt() * factor;
  expect_near(ops::cpu::zero_centred_rms_norm(x, weight, 1e-2), want);
  EXPECT_TRUE(
      at::allclose(ops::reference::zero_centred_rms_norm(exact_x, weight, 1e-2), want, 1e-5));
  const Modulation m{.shift = draw({GetParam().batch, 1, GetParam().width}, 2),
                     .scale = draw({1, 1, GetParam().width}, 3),
                     .gate = {}};
  const auto shift = m.shift.to(at::kDouble), scale = m.scale.to(at::kDouble);
  expect_near(ops::cpu::modulated_rms_norm(x, weight, m, 1e-2), want * (1 + scale) + shift, 2);
  EXPECT_TRUE(
      at::allclose(ops::reference::modulated_rms_norm(exact_x, weight, {shift, scale, {}}, 1e-2),
                   want * (1 + scale) + shift, 1e-5));
}

TEST_P(Kernels, SigmoidGated) {
  const auto halves =
      draw({GetParam().batch, GetParam().tokens, 2 * GetParam().width}, 3).chunk(2, -1);
  const auto x = halves[0].to(at::kDouble), gate = halves[1].to(at::kDouble);
  const auto want = x / (1 + (-gate).exp());
  expect_near(ops::cpu::sigmoid_gated(halves[0], halves[1]), want);
  EXPECT_TRUE(at::allclose(ops::reference::sigmoid_gated(x, gate), want));
}

// Heads of one part of a fused projection.
TEST_P(Kernels, RotateHalves) {
  constexpr std::int64_t kHeads = 3;
  const auto half = (GetParam().width + 1) / 2;
  const auto qkv = draw({GetParam().batch, GetParam().tokens, 3 * kHeads * 2 * half}, 5);
  const auto x = qkv.narrow(2, kHeads * 2 * half, kHeads * 2 * half).unflatten(-1, {kHeads, -1});
  const auto angles = draw({GetParam().tokens, half});
  const HalfSplitRope rope{.cos = angles.cos(), .sin = angles.sin()};
  const auto a = x.to(at::kDouble).narrow(3, 0, half), b = x.to(at::kDouble).narrow(3, half, half);
  const HalfSplitRope exact_rope{rope.cos.to(at::kDouble), rope.sin.to(at::kDouble)};
  const auto cos = exact_rope.cos.unsqueeze(1), sin = exact_rope.sin.unsqueeze(1);
  const auto want = at::cat({a * cos - b * sin, b * cos + a * sin}, -1);
  expect_near(ops::cpu::rotate_halves(x, rope), want);
  EXPECT_TRUE(at::allclose(ops::reference::rotate_halves(x.to(at::kDouble), exact_rope), want));
}

// The result is rounded only once.
TEST_P(Kernels, RotateHalvesByAnglesInFloat32) {
  const auto half = (GetParam().width + 1) / 2;
  const auto x = draw({GetParam().batch, GetParam().tokens, 2, 2 * half});
  const auto angles = at::arange(GetParam().tokens * half, at::kFloat).view({-1, half});
  const HalfSplitRope rope{.cos = angles.cos(), .sin = angles.sin()};
  const auto want = ops::reference::rotate_halves(x.to(at::kFloat), rope).to(x.scalar_type());
  const auto got = ops::rotate_halves(x, rope);
  EXPECT_EQ(got.scalar_type(), x.scalar_type());
  EXPECT_TRUE(at::equal(ops::reference::rotate_halves(x, rope), want));
  expect_near(got, want.to(at::kDouble));
}

INSTANTIATE_TEST_SUITE_P(Sizes, Kernels,
                         testing::Values(Case{at::kFloat, 1, 5, 64}, Case{at::kFloat, 2, 33, 67},
                                         Case{at::kFloat, 3, 1, 3072}, Case{at::kFloat, 1, 7, 1},
                                         Case{at::kBFloat16, 1, 5, 64},
                                         Case{at::kBFloat16, 2, 33, 67},
                                         Case{at::kBFloat16, 3, 1, 3072},
                                         Case{at::kBFloat16, 1, 7, 1}));

TEST(GeluKernel, IsExactFarFromZeroAndKeepsWhatIsNoNumber) {
  const auto x = at::tensor({-1e30f, -100.f, -20.f, 0.f, 20.f, 100.f, 1e30f, INFINITY, NAN});
  const auto y = ops::cpu::gelu(x.unsqueeze(0)).squeeze(0);
  for (int i : {3, 4, 5, 6, 7}) EXPECT_EQ(y[i].item<float>(), x[i].item<float>());
  for (int i : {0, 1, 2}) EXPECT_NEAR(y[i].item<float>(), 0, 1e-7);
  EXPECT_TRUE(std::isnan(y[8].item<float>()));
  EXPECT_TRUE(at::isnan(ops::cpu::gelu(at::full({1, 40}, NAN, at::kBFloat16))).all().item<bool>());
}

TEST(SwigluKernel, IsExactFarFromZeroAndKeepsWhatIsNoNumber) {
  const auto x = at::tensor({-1e30f, -100.f, 0.f, 100.f, 1e30f, NAN}).view({1, 1, -1});
  const auto y = ops::cpu::swiglu(x, at::full_like(x, 2)).flatten();
  for (int i : {0, 1}) EXPECT_NEAR(y[i].item<float>(), 0, 1e-6);
  for (int i : {2, 3, 4}) EXPECT_EQ(y[i].item<float>(), 2 * x.flatten()[i].item<float>());
  EXPECT_TRUE(std::isnan(y[5].item<float>()));
}

TEST(BfloatKernels, RoundWhatIsNormedBeforeTheWeightMultipliesIt) {
  // 3 / sqrt(3) = 1.7320 becomes 1.734375, times 1.8984375 = 3.2926; unrounded it would be 3.2882
  const auto x = at::tensor({1.f, 1.f, 1.f, 3.f}).to(at::kBFloat16).unsqueeze(0);
  const auto weight = at::full({4}, 1.8984375, at::kBFloat16);
  for (const auto& y :
       {ops::cpu::llama_rms_norm(x, weight, 0), ops::reference::llama_rms_norm(x, weight, 0)})
    EXPECT_EQ(y[0][3].item<float>(), 3.296875);
}

TEST(BfloatKernels, LeaveWeightsOfAnotherDtypeToTheDefinition) {
  const auto x = at::randn({3, 40}).to(at::kBFloat16), weight = at::randn({40});
  EXPECT_TRUE(at::equal(ops::llama_rms_norm(x, weight, 1e-6),
                        ops::reference::llama_rms_norm(x, weight, 1e-6)));
}

// A weight rounded to bfloat16, 1.0078125, would make each number 1.0078125.
TEST(BfloatKernels, KeepWeightsThatAreStoredMinusOneInFloat32) {
  const auto x = at::ones({1, 3, 32}, at::kBFloat16), weight = at::full({32}, 0.003);
  EXPECT_TRUE(at::equal(ops::zero_centred_rms_norm(x, weight, 0), x));
  const auto heads = x.view({1, 3, 2, 16});
  const Rope still{.cos = at::ones({3, 16}), .sin = at::zeros({3, 16})};
  const std::array parts = {ops::NormedHeads{heads, at::full({16}, 1.003)}};
  const auto got = ops::normed_rotated(parts, 0, still);
  EXPECT_EQ(got.scalar_type(), at::kBFloat16);
  EXPECT_TRUE(at::equal(got, heads));
  EXPECT_TRUE(at::equal(ops::reference::normed_rotated(parts, 0, still), heads));
}

TEST(BfloatKernels, RoundToNearestEven) {
  // 1 + 2^-8 lies between two bfloat16 numbers: rounds to even; so does 1 + 3 * 2^-8, upwards
  const auto one = at::full({1, 1, 32}, 1, at::kBFloat16);
  const auto sum_with = [&](double x) {
    return ops::cpu::gated_residual(one, one, at::full({1, 1, 32}, x, at::kBFloat16))
        .select(2, 0)
        .item<float>();
  };
  EXPECT_EQ(sum_with(std::pow(2, -8)), 1);
  EXPECT_EQ(sum_with(3 * std::pow(2, -8)), 1 + std::pow(2, -6));
}

TEST(Operations, RefuseShapesThatDoNotFit) {
  const auto x = at::zeros({2, 3, 8});
  EXPECT_ANY_THROW((void)ops::gated_residual(x, at::zeros({2, 1, 4}), x));
  EXPECT_ANY_THROW((void)ops::gated_residual(x, at::zeros({3, 1, 8}), x));
  EXPECT_ANY_THROW((void)ops::gated_residual(x, at::zeros({2, 1, 8}), at::zeros({2, 4, 8})));
  EXPECT_ANY_THROW((void)ops::joined_gelu(x, at::zeros({2, 4, 8})));
  const auto some_B1C = at::zeros({2, 1, 8}), two_B2C = at::zeros({1, 2, 8});
  EXPECT_ANY_THROW((void)ops::modulated_norm(x, {.shift = some_B1C, .scale = two_B2C, .gate = {}}));
  EXPECT_ANY_THROW((void)ops::modulated_norm(x, {.shift = two_B2C, .scale = some_B1C, .gate = {}}));
  EXPECT_ANY_THROW((void)ops::swiglu(x, at::zeros({2, 3, 4})));
  EXPECT_ANY_THROW((void)ops::sigmoid_gated(x, at::zeros({2, 3, 4})));
  EXPECT_ANY_THROW((void)ops::zero_centred_rms_norm(x, at::ones({4}), 1e-6));
  EXPECT_ANY_THROW((void)ops::modulated_rms_norm(x, at::ones({8}), {two_B2C, some_B1C, {}}, 0));
  EXPECT_ANY_THROW((void)ops::joined_swiglu(x, at::zeros({2, 3, 4}), x));
  EXPECT_ANY_THROW((void)ops::joined_swiglu(x, at::zeros({2, 4, 8}), at::zeros({2, 4, 8})));
  EXPECT_ANY_THROW((void)ops::llama_rms_norm(x, at::ones({4}), 1e-6));
  const auto heads = at::zeros({1, 3, 2, 8}), weight = at::ones({8}), table = at::ones({3, 8});
  const auto rotated = [&](const Tensor& cos) {
    (void)ops::normed_rotated({{{.x_BLHD = heads, .weight_D = weight}}}, 1e-6,
                              {.cos = cos, .sin = cos});
  };
  rotated(table);
  EXPECT_ANY_THROW(rotated(at::ones({4, 8})));
  EXPECT_ANY_THROW(rotated(at::ones({3, 4})));
  EXPECT_ANY_THROW(rotated(table.to(at::kBFloat16)));
  const auto half = at::ones({3, 4});
  EXPECT_ANY_THROW((void)ops::rotate_halves(heads, {.cos = table, .sin = table}));
  EXPECT_ANY_THROW((void)ops::rotate_halves(heads, {.cos = half, .sin = half.narrow(0, 0, 2)}));
  const auto of_two = half.narrow(0, 0, 2), of_four = at::ones({4, 4});  // not of the three tokens
  EXPECT_ANY_THROW((void)ops::rotate_halves(heads, {.cos = of_two, .sin = of_two}));
  EXPECT_ANY_THROW((void)ops::rotate_halves(heads, {.cos = of_four, .sin = of_four}));
}

// Which key is the last that a query sees would be anybody's guess.
TEST(Operations, RefuseCausalAttentionOfOtherTokensThanTheirOwn) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto three = at::ones({1, 2, 3, 64}, dtype), four = at::ones({1, 2, 4, 64}, dtype);
    EXPECT_NO_THROW((void)ops::causal_attention(three, three, three));
    EXPECT_THROW((void)ops::causal_attention(three, four, four), Error);
    EXPECT_THROW((void)ops::causal_attention(four, three, three), Error);
  }
}

}  // namespace braid::kernels_test
