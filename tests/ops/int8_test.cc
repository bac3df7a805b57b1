// Dense layers on 8-bit codes, against their definition and torchao's layers.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "ops/kernels/codes.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "weights/codes/int8.h"
#include "weights/files/checkpoint.h"

namespace braid::int8_test {

double relative_l2(const Tensor& got, const Tensor& want) {
  const auto wanted = want.to(at::kDouble);
  return ((got.to(at::kDouble) - wanted).norm() / wanted.norm()).item<double>();
}

struct Case {
  std::int64_t tokens, in, out;
};

class Int8Linear : public testing::TestWithParam<Case> {};

// The dynamic form sums integers exactly. Other sums may be in another order and rounded to the
// dtype once or twice: a unit in the last place of values near the largest.
void expect_as_defined(const Tensor& got, const Tensor& want, Quantize form) {
  ASSERT_EQ(got.sizes(), want.sizes());
  ASSERT_EQ(got.scalar_type(), want.scalar_type());
  if (form == Quantize::kInt8Dynamic) {
    EXPECT_TRUE(at::equal(got, want));
    return;
  }
  const auto largest = want.to(at::kDouble).abs().max();
  const auto difference = (got.to(at::kDouble) - want.to(at::kDouble)).abs().max() / largest;
  EXPECT_LE(difference.item<double>(), got.scalar_type() == at::kFloat ? 1e-5 : 1.0 / 128);
}

TEST_P(Int8Linear, EqualsItsDefinition) {
  const auto [tokens, in, out] = GetParam();
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = at::randn({2, tokens, in}, at::kFloat).to(dtype);
    const auto bias = at::randn({out}, at::kFloat).to(dtype);
    for (const auto form :
         {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8}) {
      const auto w = quantize_rows(at::randn({out, in}, at::kFloat).to(dtype), form);
      const auto got = ops::linear(x, w, bias, scratch);
      EXPECT_EQ(got.sizes(), (at::IntArrayRef{2, tokens, out}));
      EXPECT_EQ(got.scalar_type(), dtype);
      expect_as_defined(got, ops::reference::linear(x, w, bias), form);
      expect_as_defined(ops::linear(x, w, {}, scratch), ops::reference::linear(x, w, {}), form);
      expect_as_defined(ops::linear_gelu(x, w, bias, scratch), ops::gelu(got), form);
    }
  }
}

// float16 multiplies by LibTorch's product of codes, as the definition does.
TEST(Int8Layers, MayHaveOneInput) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf}) {
    const auto x = at::linspace(-2, 2, 17, at::kFloat).to(dtype).view({17, 1});
    const auto numbers = at::linspace(-1, 3, 33, at::kFloat).to(dtype).view({33, 1});
    const auto w = quantize_rows(numbers, Quantize::kInt8Dynamic);
    const auto want = x.to(at::kDouble).mm(numbers.to(at::kDouble).t());
    for (const auto& got : {ops::linear(x, w, {}, scratch), ops::reference::linear(x, w, {})})
      EXPECT_LT(relative_l2(got, want), 0.01) << dtype;
  }
}

// Remainders of every vector width, a single token, one odd large shape.
INSTANTIATE_TEST_SUITE_P(Shapes, Int8Linear,
                         testing::Values(Case{1, 8, 8}, Case{3, 17, 5}, Case{5, 31, 33},
                                         Case{1, 64, 127}, Case{2, 65, 1}, Case{77, 515, 259}));

TEST(Int8Linear, TakesInputsOfAnyStrides) {
  Scratch scratch;
  const auto x = at::randn({24, 6, 3}, at::kFloat).permute({2, 1, 0});
  const auto w = quantize_rows(at::randn({4, 24}, at::kFloat), Quantize::kInt8Dynamic);
  EXPECT_TRUE(
      at::equal(ops::linear(x, w, {}, scratch), ops::linear(x.contiguous(), w, {}, scratch)));
}

// Shares of a matrix are views.
TEST(Int8Linear, TakesWeightsThatAreViews) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto form :
         {Quantize::kInt8, Quantize::kInt8V1, Quantize::kInt8Dynamic, Quantize::kFloat8}) {
      const auto whole = quantize_rows(at::randn({9, 40}, at::kFloat).to(dtype), form);
      const auto x = at::randn({3, 17}, at::kFloat).to(dtype);
      auto view = rows_of(whole, 2, 6);
      view.values_NC = view.values_NC.narrow(1, 5, 17);
      const auto dense = map_tensors(view, [](const Tensor& t) { return t.contiguous(); });
      EXPECT_TRUE(at::equal(ops::linear(x, view, {}, scratch), ops::linear(x, dense, {}, scratch)))
          << int(form) << " " << dtype;
    }
}

TEST(Int8Tokens, AreCodedAsTheirDefinition) {
  auto x = at::randn({6, 531}, at::kFloat);
  x.select(0, 1).zero_();
  x.select(0, 2).mul_(1e-9);
  x.select(0, 3).mul_(1e30);
  x.select(0, 4).fill_(-3);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto rows = x.to(dtype);
    const auto want = quantize_rows(rows, Quantize::kInt8);
    const auto& kernels =
        ops::code_kernels(dtype == at::kFloat ? ops::RowType::kFloat32 : ops::RowType::kBfloat16);
    for (std::int64_t m = 0; m < rows.size(0); ++m) {
      const auto codes = at::empty({rows.size(1)}, at::kChar);
      const auto token = kernels.quantize(rows[m].const_data_ptr(), rows.size(1),
                                          codes.mutable_data_ptr<std::int8_t>());
      EXPECT_TRUE(at::equal(codes, want.values_NC[m])) << dtype << " " << m;
      EXPECT_EQ(token.scale, want.scales_N1[m].item<float>()) << dtype << " " << m;
      EXPECT_EQ(token.total, codes.sum().item<std::int64_t>()) << dtype << " " << m;
    }
  }
}

TEST(Int8Linear, RunsInFloat16) {
  Scratch scratch;
  const auto x = at::randn({3, 16}, at::kFloat);
  const auto w = quantize_rows(at::randn({4, 16}, at::kFloat), Quantize::kInt8);
  const auto want = ops::linear(x, w, {}, scratch);
  EXPECT_LT(relative_l2(ops::linear(x.to(at::kHalf), w, {}, scratch), want), 2e-3);
}

// The inputs are torchao's. Its layers multiply by the scales after the sum, so bfloat16 rounds
// elsewhere: neither is nearer to the exact product of the same codes.
TEST(Int8Linear, IsAsExactAsTorchao) {
  const auto file = Checkpoint::open_file(std::filesystem::path(BRAID_SOURCE_DIR) /
                                          "tests/data/parity/int8/v2.safetensors");
  const auto get = [&](const std::string& name) { return file.find(name)->view(); };
  Scratch scratch;
  for (const auto& [name, dtype] :
       {std::pair("float32", at::kFloat), std::pair("bfloat16", at::kBFloat16)}) {
    const auto x = get("x").to(dtype), bias = at::linspace(-1, 1, 24, at::kFloat).to(dtype);
    const auto w = quantize_rows(get("weights").to(dtype), Quantize::kInt8);
    const auto exact = at::linear(x.to(at::kDouble), dequantize(w, at::kFloat).to(at::kDouble),
                                  bias.to(at::kDouble));
    const auto theirs = relative_l2(get(name + std::string(".y")), exact);
    EXPECT_LT(relative_l2(ops::linear(x, w, bias, scratch), exact), 1.2 * theirs + 1e-6);
  }
}

TEST(Int8Linear, MakesWhatTorchaoMakesOfDynamicActivations) {
  const auto file = Checkpoint::open_file(std::filesystem::path(BRAID_SOURCE_DIR) /
                                          "tests/data/parity/int8/v2.safetensors");
  const auto get = [&](const std::string& name) { return file.find(name)->view(); };
  Scratch scratch;
  for (const auto& [name, dtype] :
       {std::pair("float32", at::kFloat), std::pair("bfloat16", at::kBFloat16)}) {
    const auto bias = at::linspace(-1, 1, 24, at::kFloat).to(dtype);
    const auto w = quantize_rows(get("weights").to(dtype), Quantize::kInt8Dynamic);
    const auto y = ops::linear(get("x").to(dtype), w, bias, scratch);
    EXPECT_LT(relative_l2(y, get(name + std::string(".y_dynamic"))), 1e-6);
  }
}

TEST(Scratch, IsTheSameMemoryUntilMoreIsNeeded) {
  Scratch scratch;
  const auto* const first = scratch.take({4, 4}, at::kFloat, at::kCPU).const_data_ptr();
  EXPECT_EQ(scratch.take({8}, at::kBFloat16, at::kCPU).const_data_ptr(), first);
  EXPECT_EQ(scratch.take({64}, at::kFloat, at::kCPU).numel(), 64);
}

}  // namespace braid::int8_test
