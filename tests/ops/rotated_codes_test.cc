// Int8 codes of numbers whose neighbours were rotated together (ConvRot), and products by them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "cpu/all_products.h"
#include "ops/cpu/linear.h"
#include "ops/cpu/packed.h"
#include "ops/kernels/codes.h"
#include "ops/ops.h"
#include "ops/reference.h"
#include "random_blocks.h"
#include "weights/codes/int8.h"
#include "weights/codes/rotation.h"

namespace braid::rotated_codes_test {

constexpr std::int64_t kTogether[] = {4, 16, 64, 256, 1024};

// The matrix that rotates so many neighbours, by its equation: products of a 4 x 4 matrix of
// halves, negative where row and column are opposite.
Tensor rotation(std::int64_t together) {
  const auto four = 0.5 - at::eye(4, at::kDouble).flip(1);
  auto matrix = at::ones({1, 1}, at::kDouble);
  for (std::int64_t size = 1; size < together; size *= 4) matrix = at::kron(matrix, four);
  return matrix;
}

Tensor by_equation(const Tensor& x, std::int64_t together) {
  return x.to(at::kDouble).reshape({-1, together}).mm(rotation(together)).view(x.sizes());
}

Matrix random_codes(std::int64_t rows, std::int64_t columns, std::int64_t together, Quantize form) {
  return {.form = form,
          .values_NC = at::randint(0, 256, {rows, columns}, at::kByte),
          .scales_N1 = at::rand({rows, 1}) * 0.01 + 0.001,
          .coding = std::make_shared<const QuantFormat>(QuantFormat{
              .type = ElementType::kInt8, .inputs = columns, .rotated_together = together})};
}

// The same with only runs of its columns wanted.
Matrix some_columns(const Matrix& matrix, const std::vector<Share>& columns) {
  auto some = wanting(matrix, columns);
  auto coding = *some.coding;
  coding.rotated_together = matrix.coding->rotated_together;
  some.coding = std::make_shared<const QuantFormat>(coding);
  return some;
}

// Decodes in float64.
Tensor numbers_of(const Matrix& matrix) {
  const auto codes = matrix.values_NC.view(at::kChar).to(at::kDouble);
  return by_equation(codes * matrix.scales_N1, matrix.coding->rotated_together);
}

double relative_l2(const Tensor& got, const Tensor& want) {
  return ((got.to(at::kDouble) - want).norm() / want.norm()).item<double>();
}

TEST(RotatedCodes, AreRotatedByProductsOfHadamardMatrices) {
  for (const auto together : kTogether) {
    const auto x = at::randn({3, 2 * together}, at::kDouble);
    EXPECT_TRUE(at::allclose(rotated(x, together), by_equation(x, together), 0, 1e-13));
    EXPECT_TRUE(at::allclose(rotated(rotated(x, together), together), x, 0, 1e-13));
  }
}

TEST(RotatedCodes, LoopsQuantizeAsTheDefinitionDoes) {
  for (const auto together : kTogether)
    for (const std::int64_t groups : {1, 3, 16})
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        auto x = at::randn({5, groups * together}).to(dtype);
        x[1].zero_();
        x[2].mul_(1e30);
        x[3][0] = 1e4;
        const auto want = quantize_rows(rotated(x.to(at::kFloat), together), Quantize::kInt8);
        const auto& kernels = ops::code_kernels(dtype == at::kFloat ? ops::RowType::kFloat32
                                                                    : ops::RowType::kBfloat16);
        for (std::int64_t row = 0; row < x.size(0); ++row) {
          const auto codes = at::empty({x.size(1)}, at::kChar);
          const auto numbers = at::empty({x.size(1)}, at::kFloat);
          const auto token =
              kernels.quantize_rotated(x[row].const_data_ptr(),
                                       {.count = x.size(1),
                                        .together = together,
                                        .numbers = numbers.mutable_data_ptr<float>()},
                                       codes.mutable_data_ptr<std::int8_t>());
          EXPECT_EQ(token.scale, want.scales_N1[row].item<float>()) << together << " row " << row;
          EXPECT_TRUE(at::equal(codes, want.values_NC[row])) << together << " row " << row;
          EXPECT_EQ(token.total, codes.sum().item<int>()) << together << " row " << row;
        }
      }
}

TEST(RotatedCodes, ATokenThatIsNotANumberStaysOne) {
  Scratch scratch;
  const auto matrix = random_codes(3, 64, 16, Quantize::kInt8Dynamic);
  auto x = at::randn({2, 64});
  x[0][5] = std::numeric_limits<float>::quiet_NaN();
  const auto y = ops::linear(x, matrix, {}, scratch);
  EXPECT_TRUE(y[0].isnan().all().item<bool>());
  EXPECT_FALSE(y[1].isnan().any().item<bool>());
}

TEST(RotatedCodes, LoopsDecodeAsTheDefinitionDoes) {
  for (const auto together : kTogether) {
    const auto whole = random_codes(5, 2048, together, Quantize::kInt8);
    for (const auto& matrix : {whole, some_columns(whole, {{3, 300}, {512, 7}, {1100, 924}})})
      for (const auto dtype : {at::kFloat, at::kBFloat16}) {
        const auto out = at::empty({5, matrix.inputs()}, dtype);
        ops::decode_on_cpu(matrix, out);
        EXPECT_TRUE(at::equal(out, dequantize(matrix, dtype))) << together << " " << dtype;
      }
    EXPECT_LT(relative_l2(dequantize(whole, at::kFloat), numbers_of(whole)), 1e-6);
  }
}

// A device without products of codes multiplies their numbers in 16 bits.
TEST(RotatedCodes, MultiplyAsTheirNumbersDo) {
  Scratch scratch;
  for (const std::int64_t together : {16, 256, 1024})
    for (const std::int64_t tokens : {1, 3, 40})
      for (const auto dtype : {at::kBFloat16, at::kFloat, at::kHalf}) {
        const auto matrix =
            some_columns(random_codes(70, 2048, together, Quantize::kInt8), {{0, 256}, {300, 500}});
        const auto x = at::randn({2, tokens, matrix.inputs()}).to(dtype);
        const auto bias = at::randn({70}).to(dtype);
        const Matrix numbers{.values_NC = dequantize(matrix, dtype)};
        EXPECT_TRUE(at::equal(ops::linear(x, matrix, bias, scratch),
                              ops::linear(x, numbers, bias, scratch)))
            << together << " " << tokens << " " << dtype;
      }
}

struct Case {
  std::int64_t tokens, inputs, outputs, together;
};

class RotatedProduct : public testing::TestWithParam<Case> {};

// Sums of codes are exact, so that every instruction set has the definition's bits.
TEST_P(RotatedProduct, EqualsItsDefinition) {
  const auto [tokens, inputs, outputs, together] = GetParam();
  Scratch scratch;
  const auto matrix = random_codes(outputs, inputs, together, Quantize::kInt8Dynamic);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = at::randn({tokens, inputs}).to(dtype);
    const auto bias = at::randn({outputs}).to(dtype);
    const auto want = ops::reference::linear(x, matrix, bias);
    EXPECT_TRUE(at::equal(ops::linear(x, matrix, bias, scratch), want));
    EXPECT_TRUE(at::equal(ops::linear_gelu(x, matrix, bias, scratch), ops::gelu(want)));
    for (const auto& [name, kernels] : all_products())
      EXPECT_TRUE(
          at::equal(ops::cpu::linear(x, matrix, bias, ops::cpu::Finish::kPlain, kernels), want))
          << name << " " << dtype;
  }
}

// Half a code of 127.5 of the token's largest number, about three deviations, is lost in each: in
// all 3 / 127.5 / sqrt(12) of a deviation, 0.7 %. bfloat16 adds half of 2^-8, twice.
TEST_P(RotatedProduct, IsNearTheExactOne) {
  const auto [tokens, inputs, outputs, together] = GetParam();
  Scratch scratch;
  const auto matrix = random_codes(outputs, inputs, together, Quantize::kInt8Dynamic);
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = at::randn({tokens, inputs}).to(dtype);
    const auto want = x.to(at::kDouble).mm(numbers_of(matrix).t());
    EXPECT_LT(relative_l2(ops::linear(x, matrix, {}, scratch), want), 0.015) << dtype;
  }
}

INSTANTIATE_TEST_SUITE_P(Shapes, RotatedProduct,
                         testing::Values(Case{1, 16, 8, 4}, Case{3, 64, 5, 16},
                                         Case{5, 192, 33, 64}, Case{2, 1280, 1, 256},
                                         Case{77, 768, 259, 256}, Case{4, 2048, 40, 1024}));

// What rotations are for: one large channel takes the codes of all others.
TEST(RotatedCodes, LoseLessOfTokensWithALargeChannel) {
  Scratch scratch;
  const auto w = at::randn({64, 512});
  auto x = at::randn({32, 512});
  x.select(1, 77).mul_(100);
  const auto want = x.to(at::kDouble).mm(w.to(at::kDouble).t());
  const auto plain = quantize_rows(w, Quantize::kInt8Dynamic);
  auto turned = quantize_rows(rotated(w, 256), Quantize::kInt8Dynamic);
  turned.values_NC = turned.values_NC.view(at::kByte);
  turned.coding = random_codes(1, 512, 256, Quantize::kInt8Dynamic).coding;
  EXPECT_LT(2 * relative_l2(ops::linear(x, turned, {}, scratch), want),
            relative_l2(ops::linear(x, plain, {}, scratch), want));
}

// Ranks that share the inputs keep the whole groups that hold theirs; a group that two of them
// share is rotated in both, with zeros for the other's numbers.
TEST(RotatedCodes, OfSharesAddUpToTheWhole) {
  Scratch scratch;
  for (const std::int64_t together : {16, 64}) {
    const auto whole = random_codes(40, 256, together, Quantize::kInt8Dynamic);
    const auto x = at::randn({20, 256});
    const auto want = x.to(at::kDouble).mm(numbers_of(whole).t());
    auto sum = at::zeros({20, 40}, at::kDouble);
    const std::vector<std::pair<std::int64_t, std::int64_t>> cuts = {
        {0, 100}, {100, 70}, {170, 86}};
    for (const auto& [begin, count] : cuts) {
      const auto first = begin / together * together;
      const auto end = (begin + count + together - 1) / together * together;
      auto share = whole;
      share.values_NC = whole.values_NC.narrow(1, first, end - first).contiguous();
      share = some_columns(share, {{.begin = begin - first, .count = count}});
      const auto mine = x.narrow(1, begin, count);
      const auto y = ops::linear(mine, share, {}, scratch);
      EXPECT_TRUE(at::equal(y, ops::reference::linear(mine, share, {})));
      sum += y.to(at::kDouble);
    }
    EXPECT_LT(relative_l2(sum, want), 0.012) << together;
  }
}

// Adapters multiply the tokens as they came.
TEST(RotatedCodes, HaveProductsOfUnrotatedTokensBesideThem) {
  Scratch scratch;
  auto matrix = random_codes(24, 64, 64, Quantize::kInt8Dynamic);
  const auto x = at::randn({6, 64}), down = at::randn({2, 64}), up = at::randn({24, 2});
  const auto alone = ops::linear(x, matrix, {}, scratch);
  matrix.low_rank = std::make_shared<const LowRank>(
      LowRank{.down_RC = down, .scales_R = at::tensor({0.5f, 2.f}), .up_NR = up});
  const auto want = alone + (x.mm(down.t()) * at::tensor({0.5f, 2.f})).mm(up.t());
  EXPECT_TRUE(at::allclose(ops::linear(x, matrix, {}, scratch), want, 1e-5, 1e-4));
}

}  // namespace braid::rotated_codes_test
