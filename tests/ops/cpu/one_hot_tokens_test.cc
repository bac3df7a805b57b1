// Tokens that are 1 in one place and 0 elsewhere read a layer's weight column by column, without
// any error of summation: every form of weight must come out as its definition says, to the bit.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <vector>

#include "all_products.h"
#include "drawn.h"
#include "ops/cpu/linear.h"
#include "ops/ops.h"
#include "use_threads.h"
#include "weights/codes/float8.h"
#include "weights/codes/int8.h"

namespace braid::one_hot_tokens_test {

using ops::cpu::Finish;

// Codes that are powers of two, whose products with these scales lie halfway between two bfloat16
// numbers: 1 + 2^-8 rounds down to 1, 1 + 3 * 2^-8 up to 1 + 2^-6.
Matrix halfway_codes(std::int64_t rows, std::int64_t columns, Quantize form) {
  const auto exponent = at::arange(rows * columns, at::kLong).remainder(7);
  const auto signs = 1 - 2 * at::arange(rows * columns, at::kLong).remainder(2);
  const auto codes = at::pow(2, exponent).mul(signs).to(at::kChar).view({rows, columns});
  const auto odd = at::arange(rows, at::kFloat).remainder(2);
  return {.form = form, .values_NC = codes, .scales_N1 = (1 + (1 + 2 * odd) / 256).unsqueeze(1)};
}

// Rows [first, first + count) of the unit matrix, as tokens.
Tensor one_hot(std::int64_t width, std::int64_t first, std::int64_t count, at::ScalarType dtype) {
  return at::eye(width, at::TensorOptions(dtype)).narrow(0, first, count);
}

// Multiplies as few tokens as go without panels, and all at once.
void expect_read(const Matrix& weight, const char* name, const ops::ProductKernels* kernels) {
  const auto width = weight.inputs();
  const auto want = dequantize(weight, at::kBFloat16).t();
  for (const std::int64_t count : {std::int64_t(1), std::int64_t(3), width})
    for (std::int64_t first = 0; first + count <= width; first += count) {
      const auto x = one_hot(width, first, count, at::kBFloat16);
      EXPECT_TRUE(at::equal(ops::cpu::linear(x, weight, {}, Finish::kPlain, kernels),
                            want.narrow(0, first, count)))
          << name << ", form " << int(weight.form) << ", tokens " << first << "+" << count;
    }
}

TEST(OneHotTokens, ReadWeightsOfEveryFormAsDefined) {
  for (const auto& [name, kernels] : all_products())
    for (const std::int64_t inputs : {33, 64})
      for (const std::int64_t outputs : {19, 40}) {
        const auto numbers = draw_floats({outputs, inputs}, 1).to(at::kBFloat16);
        expect_read({.values_NC = numbers}, name, kernels);
        for (const auto form : {Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8})
          expect_read(quantize_rows(numbers, form), name, kernels);
      }
}

TEST(OneHotTokens, ReadCodesHalfwayBetweenTwoNumbersAsTheEvenOne) {
  for (const auto& [name, kernels] : all_products())
    for (const std::int64_t inputs : {37, 72})
      expect_read(halfway_codes(21, inputs, Quantize::kInt8), name, kernels);
}

TEST(OneHotTokens, ReadFloat8OfEverySizeAsDefined) {
  // all 254 codes that are numbers, and their negatives' rows by other scales
  const auto bytes = at::cat({at::arange(0, 0x7f, at::kByte), at::arange(0x80, 0xff, at::kByte)});
  const Matrix weight{.form = Quantize::kFloat8,
                      .values_NC = bytes.expand({5, 254}).contiguous(),
                      .scales_N1 = at::tensor({1.f, 0.3f, 1e-30f, 1e30f, 0.f}).unsqueeze(1),
                      .coding = coding_of(Quantize::kFloat8)};
  const auto want = dequantize(weight, at::kBFloat16).t();
  for (const auto& [name, kernels] : all_products()) {
    const auto all = one_hot(254, 0, 254, at::kBFloat16);
    EXPECT_TRUE(at::equal(ops::cpu::linear(all, weight, {}, Finish::kPlain, kernels), want))
        << name;
  }
}

// The layers that models call, in every dtype; whichever kernels are chosen.
TEST(OneHotTokens, ReadWeightsInEveryDtype) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1, Quantize::kFloat8})
      for (const int threads : {1, 2, 3}) {
        const UseThreads use(threads);
        const auto numbers = draw_floats({21, 50}, 2).to(dtype);
        const auto weight =
            form == Quantize::kNone ? Matrix{.values_NC = numbers} : quantize_rows(numbers, form);
        const auto got = ops::linear(one_hot(50, 0, 50, dtype), weight, {}, scratch);
        EXPECT_EQ(got.scalar_type(), dtype);
        EXPECT_TRUE(at::equal(got, dequantize(weight, dtype).t())) << dtype << " " << int(form);
      }
}

// A sum is rounded once, with its bias: 1 + 2^-9 is 1 in bfloat16, and again plus 2^-9; together
// they are 1 + 2^-8, halfway, and with a little more the next number.
TEST(Biases, AreAddedBeforeTheSumIsRounded) {
  for (const auto& [name, kernels] : all_products())
    for (const std::int64_t tokens : {1, 4, 5, 40}) {
      const auto x = at::ones({tokens, 2}, at::kBFloat16);
      const Matrix weight{.values_NC = at::tensor({1.f, 0x1p-9f}).to(at::kBFloat16).expand({3, 2})};
      const auto bias = at::tensor({0x1p-9f, 1.5f * 0x1p-9f, 0.f}).to(at::kBFloat16);
      const auto got = ops::cpu::linear(x, weight, bias, Finish::kPlain, kernels);
      const auto want = at::tensor({1.f, 1 + 0x1p-7f, 1.f}).to(at::kBFloat16).expand({tokens, 3});
      EXPECT_TRUE(at::equal(got, want)) << name << " " << tokens;
    }
}

// They may be slices of joined tensors, or columns of a table; scales, too.
TEST(Biases, AndScalesMayBeViews) {
  const auto every_other = [](const Tensor& x) { return at::stack({x, -x}, 1).select(1, 0); };
  for (const auto& [name, kernels] : all_products())
    for (const std::int64_t tokens : {2, 40})
      for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic}) {
        const auto x = draw_floats({tokens, 33}, 6).to(at::kBFloat16),
                   numbers = draw_floats({20, 33}, 7).to(x);
        for (const auto dtype : {at::kBFloat16, at::kFloat}) {
          const auto bias = draw_floats({20}, 8).to(dtype);
          auto weight =
              form == Quantize::kNone ? Matrix{.values_NC = numbers} : quantize_rows(numbers, form);
          const auto want = ops::cpu::linear(x, weight, bias, Finish::kPlain, kernels);
          if (weight.scales_N1.defined()) weight.scales_N1 = every_other(weight.scales_N1);
          EXPECT_TRUE(at::equal(
              ops::cpu::linear(x, weight, every_other(bias), Finish::kPlain, kernels), want))
              << name << " " << tokens << " " << int(form);
        }
      }
}

// A layer's leading dims are the tokens': none, one or several.
TEST(Layers, TakeTokensOfAnyNumberOfDims) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic}) {
      const auto numbers = draw_floats({7, 20}, 3).to(dtype);
      const auto weight =
          form == Quantize::kNone ? Matrix{.values_NC = numbers} : quantize_rows(numbers, form);
      const auto x = draw_floats({20}, 4).to(dtype), bias = draw_floats({7}, 5).to(dtype);
      const auto want = ops::linear(x.view({1, 20}), weight, bias, scratch)[0];
      EXPECT_TRUE(at::equal(ops::linear(x, weight, bias, scratch), want))
          << dtype << " " << int(form);
      const auto deep = ops::linear(x.view({1, 1, 1, 20}), weight, bias, scratch);
      EXPECT_EQ(deep.sizes(), (std::vector<std::int64_t>{1, 1, 1, 7}));
      EXPECT_TRUE(at::equal(deep.flatten(), want)) << dtype << " " << int(form);
    }
}

}  // namespace braid::one_hot_tokens_test
