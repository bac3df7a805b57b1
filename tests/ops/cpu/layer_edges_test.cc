// Dense layers in a user's hands: views whose rows begin anywhere, NaN and infinity, no tokens, and
// adapters beside weights of every form.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cmath>
#include <memory>
#include <vector>

#include "all_products.h"
#include "drawn.h"
#include "ops/cpu/linear.h"
#include "ops/ops.h"
#include "weights/codes/int8.h"

namespace braid::layer_edges_test {

constexpr Quantize kForms[] = {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1,
                               Quantize::kInt8Dynamic, Quantize::kFloat8};

Matrix in_form(const Tensor& numbers_NC, Quantize form) {
  return form == Quantize::kNone ? Matrix{.values_NC = numbers_NC}
                                 : quantize_rows(numbers_NC, form);
}

// Kernels read x where it lies if its words are aligned; otherwise they copy it. Bits are equal.
TEST(LayersOfViews, EqualThoseOfCopies) {
  for (const auto& [name, kernels] : all_products())
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic})
      for (const std::int64_t inputs : {32, 33, 34})
        for (const std::int64_t tokens : {3, 40}) {
          const auto w = in_form(draw_floats({20, inputs}, 1).to(at::kBFloat16), form);
          for (const std::int64_t first : {0, 1, 2, 3})
            for (const std::int64_t more : {4, 5}) {
              const auto wide = draw_floats({tokens, inputs + more}, 2).to(at::kBFloat16);
              const auto x = wide.narrow(1, first, inputs);
              const auto by = [&, kernels = kernels](const Tensor& input) {
                return ops::cpu::linear(input, w, {}, ops::cpu::Finish::kPlain, kernels);
              };
              EXPECT_TRUE(at::equal(by(x), by(x.clone())))
                  << name << " " << int(form) << " " << inputs << " " << tokens << " " << first;
            }
        }
}

// Words of two or four numbers must not take in what lies beside a view of an odd width.
TEST(LayersOfViews, ReadNothingBesideThem) {
  for (const auto& [name, kernels] : all_products())
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic})
      for (const std::int64_t inputs : {17, 33, 35})
        for (const std::int64_t tokens : {3, 9}) {
          const auto x = draw_floats({tokens, inputs}, 11).to(at::kBFloat16);
          const auto wide = at::full({tokens, 40}, double(NAN), x.options());
          const auto view = wide.narrow(1, 2, inputs).copy_(x);
          const auto w = in_form(draw_floats({20, inputs}, 12).to(at::kBFloat16), form);
          const auto by = [&, kernels = kernels](const Tensor& input) {
            return ops::cpu::linear(input, w, {}, ops::cpu::Finish::kPlain, kernels);
          };
          EXPECT_TRUE(at::equal(by(view), by(x)))
              << name << " " << int(form) << " " << inputs << " " << tokens;
        }
}

// There are as many tokens as for kernels of few, and of many; the width leaves words to be padded.
TEST(LayersOfNonFiniteNumbers, KeepItInItsToken) {
  for (const auto& [name, kernels] : all_products())
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8Dynamic})
      for (const std::int64_t tokens : {3, 40})
        for (const double number : {double(NAN), double(INFINITY)}) {
          const auto w = in_form(draw_floats({20, 33}, 3).to(at::kBFloat16), form);
          const auto x = draw_floats({tokens, 33}, 4).to(at::kBFloat16);
          auto odd = x.clone();
          odd[1][32] = number;
          const auto by = [&, kernels = kernels](const Tensor& input) {
            return ops::cpu::linear(input, w, {}, ops::cpu::Finish::kPlain, kernels);
          };
          const auto want = by(x);
          auto got = by(odd);
          EXPECT_FALSE(got[1].isfinite().any().item<bool>())
              << name << " " << int(form) << " " << tokens << " " << number;
          got[1] = want[1];
          EXPECT_TRUE(at::equal(got, want)) << name << " " << int(form) << " " << tokens;
        }
}

TEST(LayersOfParts, ReadBothWhateverFollows) {
  Scratch scratch;
  const auto x = draw_floats({2, 3, 33}, 13);
  const Matrix w{.values_NC = draw_floats({20, 33}, 14)};
  const auto bias = draw_floats({20}, 15);
  const auto in = ops::LayerInput::in_parts(x.narrow(2, 0, 20), x.narrow(2, 20, 13));
  const auto want = at::linear(x, w.values_NC, bias);
  EXPECT_TRUE(at::allclose(ops::linear(in, w, bias, scratch), want, 1e-5, 1e-5));
  EXPECT_TRUE(
      at::allclose(ops::linear_gelu(in, w, bias, scratch), at::gelu(want, "tanh"), 1e-5, 1e-5));
}

TEST(LayersOfNonFiniteNumbers, KeepItInItsOutput) {
  for (const auto& [name, kernels] : all_products())
    for (const std::int64_t tokens : {3, 40}) {
      const auto x = draw_floats({tokens, 33}, 5).to(at::kBFloat16);
      const auto numbers = draw_floats({20, 33}, 6).to(at::kBFloat16);
      auto odd = numbers.clone();
      odd[7][32] = NAN;
      const auto by = [&, kernels = kernels](const Tensor& rows) {
        return ops::cpu::linear(x, {.values_NC = rows}, {}, ops::cpu::Finish::kPlain, kernels);
      };
      const auto want = by(numbers), got = by(odd);
      EXPECT_TRUE(got.select(1, 7).isnan().all().item<bool>()) << name << " " << tokens;
      got.select(1, 7).copy_(want.select(1, 7));
      EXPECT_TRUE(at::equal(got, want)) << name << " " << tokens;
    }
}

TEST(LayersOfNonFiniteNumbers, KeepItInEveryFormAndDtype) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto form : kForms) {
      const auto w = in_form(draw_floats({20, 33}, 7).to(dtype), form);
      auto x = draw_floats({2, 3, 33}, 8).to(dtype);
      const auto want = ops::linear(x, w, {}, scratch);
      x[1][2][0] = NAN;
      auto got = ops::linear(x, w, {}, scratch);
      EXPECT_TRUE(got[1][2].isnan().all().item<bool>()) << dtype << " " << int(form);
      got[1][2] = want[1][2];
      EXPECT_LT((got - want).abs().max().item<double>(), 1e-5) << dtype << " " << int(form);
    }
}

// Tokens of zeros have no largest number to be scaled by, nor have rows of zeros.
TEST(LayersOfZeros, ReturnTheBias) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const auto form : kForms)
      for (const std::int64_t tokens : {3, 40}) {
        const auto bias = draw_floats({20}, 15).to(dtype),
                   numbers = draw_floats({20, 33}, 16).to(dtype);
        const auto want = bias.expand({tokens, 20});
        const auto of_tokens =
            ops::linear(at::zeros({tokens, 33}, dtype), in_form(numbers, form), bias, scratch);
        EXPECT_TRUE(at::equal(of_tokens, want)) << dtype << " " << int(form) << " " << tokens;
        const auto of_rows = ops::linear(draw_floats({tokens, 33}, 17).to(dtype),
                                         in_form(at::zeros_like(numbers), form), bias, scratch);
        EXPECT_TRUE(at::equal(of_rows, want)) << dtype << " " << int(form) << " " << tokens;
      }
}

TEST(LayersWithoutTokens, MakeNone) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf})
    for (const auto form : kForms) {
      const auto w = in_form(draw_floats({20, 33}, 9).to(dtype), form);
      const auto x = at::empty({2, 0, 33}, dtype), bias = at::ones({20}, dtype);
      const std::vector<std::int64_t> want{2, 0, 20};
      EXPECT_EQ(ops::linear(x, w, bias, scratch).sizes(), want) << dtype << " " << int(form);
      EXPECT_EQ(ops::linear_gelu(x, w, bias, scratch).sizes(), want) << dtype << " " << int(form);
    }
}

// x (W + B diag(s) A)^T for x [2 L C] and its views, W as the numbers that its codes stand for.
TEST(LayersWithAdaptersBeside, AddTheirScaledProduct) {
  Scratch scratch;
  for (const auto dtype : {at::kFloat, at::kBFloat16})
    for (const auto form : {Quantize::kNone, Quantize::kInt8, Quantize::kInt8V1}) {
      auto w = in_form(draw_floats({20, 33}, 10).to(dtype), form);
      const auto down = draw_floats({3, 33}, 11).to(dtype), up = draw_floats({20, 3}, 12).to(dtype);
      const auto scales = at::tensor({0.5f, -2.f, 0.f}).to(dtype),
                 bias = draw_floats({20}, 13).to(dtype);
      const auto x = draw_floats({2, 33, 40}, 14).to(dtype).transpose(1, 2);
      const auto both = dequantize(w, dtype).to(at::kDouble) +
                        (up.to(at::kDouble) * scales.to(at::kDouble)).mm(down.to(at::kDouble));
      const auto want = at::linear(x.to(at::kDouble), both, bias.to(at::kDouble));
      w.low_rank = std::make_shared<const LowRank>(
          LowRank{.down_RC = down, .scales_R = scales, .up_NR = up});
      const auto got = ops::linear(x, w, bias, scratch);
      const auto error = (got.to(at::kDouble) - want).abs().max() / want.abs().max();
      EXPECT_LT(error.item<double>(), dtype == at::kFloat ? 1e-5 : 1.0 / 64)
          << dtype << " " << int(form);
      const auto active = ops::linear_gelu(x, w, bias, scratch);
      EXPECT_LT(((active.to(at::kDouble) - at::gelu(want, "tanh")).abs().max() / want.abs().max())
                    .item<double>(),
                dtype == at::kFloat ? 1e-5 : 1.0 / 64)
          << dtype << " " << int(form);
    }
}

}  // namespace braid::layer_edges_test
