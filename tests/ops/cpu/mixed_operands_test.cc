// Operands as loads and layouts may leave them: in several dtypes, rotary tables and weights that
// are views, keys of fewer pictures than queries. Kernels read memory as one dtype and stride; what
// does not fit them must be computed by the definition.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "base/error.h"
#include "drawn.h"
#include "ops/ops.h"

namespace braid::mixed_operands_test {

constexpr std::int64_t kTokens = 5, kHeads = 3, kHeadWidth = 16, kWidth = kHeads * kHeadWidth;

struct Operands {
  Tensor a = draw_floats({2, kTokens, kWidth}, 1), b = draw_floats({2, kTokens, kWidth}, 2),
         c = draw_floats({2, kTokens, kWidth}, 3);
  Modulation m = {draw_floats({2, 1, kWidth}, 4), draw_floats({2, 1, kWidth}, 5),
                  draw_floats({2, 1, kWidth}, 6)};
  Tensor weight = draw_floats({kHeadWidth}, 7);
  Tensor angles = draw_floats({kTokens, kHeadWidth / 2}, 8);

  std::array<Tensor*, 7> all() { return {&a, &b, &c, &m.shift, &m.scale, &m.gate, &weight}; }
};

Operands in(Operands operands, at::ScalarType dtype) {
  for (auto* const x : operands.all()) *x = x->to(dtype);
  return operands;
}

Tensor heads_of(const Tensor& x) { return x.unflatten(-1, {kHeads, kHeadWidth}); }

Rope rope_of(const Tensor& angles) {
  const auto twice = angles.repeat_interleave(2, 1);
  return {.cos = twice.cos(), .sin = twice.sin()};
}

struct Operation {
  const char* name;
  Tensor (*run)(const Operands& x);
  Tensor (*define)(const Operands& x);  // of float64 operands
};

Tensor normed(const Tensor& x) {
  const auto centred = x - x.mean(-1, true);
  return centred / (centred.square().mean(-1, true) + 1e-6).sqrt();
}

const Operation kOperations[] = {
    {"modulated_norm", [](const Operands& x) { return ops::modulated_norm(x.a, x.m); },
     [](const Operands& x) { return normed(x.a) * (1 + x.m.scale) + x.m.shift; }},
    {"gated_residual", [](const Operands& x) { return ops::gated_residual(x.a, x.m.gate, x.b); },
     [](const Operands& x) { return x.a + x.m.gate * x.b; }},
    {"joined_gelu", [](const Operands& x) { return ops::joined_gelu(x.a, x.b); },
     [](const Operands& x) {
       return at::cat({x.a, at::gelu(x.b, "tanh")}, -1);
     }},
    {"swiglu", [](const Operands& x) { return ops::swiglu(x.a, x.b); },
     [](const Operands& x) { return x.a * at::sigmoid(x.a) * x.b; }},
    {"rms_norm",
     [](const Operands& x) { return ops::rms_norm(heads_of(x.a), x.weight, 1e-6).flatten(2); },
     [](const Operands& x) {
       const auto h = heads_of(x.a);
       return (h / (h.square().mean(-1, true) + 1e-6).sqrt() * x.weight).flatten(2);
     }}};

double error_of(const Tensor& got, const Tensor& want) {
  return ((got.to(at::kDouble) - want).abs().max() / want.abs().max()).item<double>();
}

// A few roundings.
double limit_of(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-5 : 1.0 / 64; }

// Each operand in turn is float32 among bfloat16 ones, and bfloat16 among float32 ones. A few
// roundings of the narrower dtype remain.
TEST(MixedOperands, GiveTheResultOfTheirNumbers) {
  for (const auto usual : {at::kFloat, at::kBFloat16})
    for (std::size_t other = 0; other < 7; ++other) {
      auto operands = in({}, usual);
      auto* const odd = operands.all()[other];
      *odd = odd->to(usual == at::kFloat ? at::kBFloat16 : at::kFloat);
      const auto exact = in(operands, at::kDouble);
      for (const auto& [name, run, define] : kOperations)
        EXPECT_LT(error_of(run(operands), define(exact)), 1.0 / 64)
            << name << " " << usual << ", operand " << other;
    }
}

// The result has x's dtype, or the angles' if that is wider; float64 angles are refused by nobody.
TEST(MixedOperands, RotateHalvesByAnglesOfEveryDtype) {
  constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble};
  const Operands operands;
  for (const auto of_x : kDtypes)
    for (const auto of_angles : kDtypes) {
      const auto x = heads_of(operands.a).to(of_x);
      const HalfSplitRope rope{.cos = operands.angles.cos().to(of_angles),
                               .sin = operands.angles.sin().to(of_angles)};
      const auto a = x.to(at::kDouble).narrow(3, 0, kHeadWidth / 2),
                 b = x.to(at::kDouble).narrow(3, kHeadWidth / 2, kHeadWidth / 2);
      const auto cos = rope.cos.to(at::kDouble).unsqueeze(1),
                 sin = rope.sin.to(at::kDouble).unsqueeze(1);
      const auto got = ops::rotate_halves(x, rope);
      EXPECT_EQ(got.scalar_type(), of_x);
      EXPECT_LT(error_of(got, at::cat({a * cos - b * sin, b * cos + a * sin}, -1)), 1.0 / 64)
          << of_x << " by " << of_angles;
    }
}

// Parts of one dtype, under norms of another, and parts of two dtypes.
TEST(MixedOperands, AreNormedAndRotatedTogether) {
  const Operands operands;
  const auto rope = rope_of(at::cat({operands.angles, operands.angles}));
  const auto first = heads_of(operands.a), second = heads_of(operands.b);
  const auto want = [&] {
    const auto h = at::cat({first, second}, 1).to(at::kDouble);
    const auto n = h / (h.square().mean(-1, true) + 1e-6).sqrt() * operands.weight.to(at::kDouble);
    const auto pairs = n.unflatten(-1, {-1, 2});
    const auto turned = at::stack({-pairs.select(-1, 1), pairs.select(-1, 0)}, -1).flatten(-2);
    return n * rope.cos.to(at::kDouble).unsqueeze(1) +
           turned * rope.sin.to(at::kDouble).unsqueeze(1);
  }();
  const auto expect = [&](const Tensor& a, const Tensor& of_a, const Tensor& b,
                          const Tensor& of_b) {
    const std::array parts = {ops::NormedHeads{a, of_a}, ops::NormedHeads{b, of_b}};
    EXPECT_LT(error_of(ops::normed_rotated(parts, 1e-6, rope), want), 1.0 / 64)
        << a.scalar_type() << " " << of_a.scalar_type() << ", " << b.scalar_type() << " "
        << of_b.scalar_type();
  };
  constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16};
  for (const auto of_first : kDtypes)
    for (const auto of_second : kDtypes) {
      const auto a = first.to(of_first), b = second.to(of_second);
      expect(a, operands.weight.to(of_first), b, operands.weight.to(of_second));
      for (const auto of_weight : kDtypes) {
        const auto weight = operands.weight.to(of_weight);
        expect(a, weight, b, weight);
      }
    }
}

// ---------------------------------------------------------------------------------- views

// A table's rows may be every other row of a longer one, its columns half of a wider one.
TEST(RotaryTables, MayBeViews) {
  const auto wide = draw_floats({2 * kTokens, 2 * kHeadWidth}, 9);
  const auto view = wide.slice(0, 0, 2 * kTokens, 2).narrow(1, 3, kHeadWidth);
  ASSERT_FALSE(view.is_contiguous());
  const Rope views{.cos = view.cos(), .sin = view.sin()},
      rope{.cos = views.cos.contiguous(), .sin = views.sin.contiguous()};
  const Rope strided{.cos = wide.cos().slice(0, 0, 2 * kTokens, 2).narrow(1, 3, kHeadWidth),
                     .sin = wide.sin().slice(0, 0, 2 * kTokens, 2).narrow(1, 3, kHeadWidth)};
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = heads_of(Operands().a).to(dtype), weight = Operands().weight.to(dtype);
    const std::array parts = {ops::NormedHeads{x.narrow(1, 0, 2), weight},
                              ops::NormedHeads{x.narrow(1, 2, kTokens - 2), weight}};
    EXPECT_TRUE(at::equal(ops::normed_rotated(parts, 1e-6, strided),
                          ops::normed_rotated(parts, 1e-6, rope)))
        << dtype;
    EXPECT_TRUE(at::equal(ops::rotate(x, strided), ops::rotate(x, rope))) << dtype;
    const auto half = [](const Tensor& t) { return t.narrow(1, 1, kHeadWidth / 2); };
    const HalfSplitRope narrow{.cos = half(strided.cos), .sin = half(strided.sin)},
        dense{.cos = narrow.cos.contiguous(), .sin = narrow.sin.contiguous()};
    EXPECT_TRUE(at::equal(ops::rotate_halves(x, narrow), ops::rotate_halves(x, dense))) << dtype;
    const auto turned = narrow.cos.t().contiguous().t();  // columns are not adjacent
    // by the definition, which rounds elsewhere
    EXPECT_LT(error_of(ops::rotate_halves(x, {.cos = turned, .sin = narrow.sin}),
                       ops::rotate_halves(x, dense).to(at::kDouble)),
              limit_of(dtype))
        << dtype;
  }
}

TEST(RotaryTables, AreTwoOfAShape) {
  const auto x = heads_of(Operands().a), weight = Operands().weight;
  const auto table = at::ones({kTokens, kHeadWidth});
  const std::array parts = {ops::NormedHeads{x, weight}};
  EXPECT_NO_THROW((void)ops::normed_rotated(parts, 1e-6, {.cos = table, .sin = table}));
  for (const auto& sin : {table.narrow(0, 0, kTokens - 1), table.narrow(1, 0, kHeadWidth - 1)})
    EXPECT_THROW((void)ops::normed_rotated(parts, 1e-6, {.cos = table, .sin = sin}), Error);
}

TEST(NormWeights, MayBeViews) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = heads_of(Operands().a).to(dtype);
    const auto every_other =
        draw_floats({2 * kHeadWidth}, 10).to(dtype).slice(0, 0, 2 * kHeadWidth, 2);
    const auto dense = every_other.contiguous();
    EXPECT_LT(error_of(ops::llama_rms_norm(x, every_other, 1e-6),
                       ops::llama_rms_norm(x, dense, 1e-6).to(at::kDouble)),
              limit_of(dtype))
        << dtype;
    const auto rope = rope_of(Operands().angles);
    const std::array strided = {ops::NormedHeads{x, every_other}},
                     packed = {ops::NormedHeads{x, dense}};
    EXPECT_TRUE(at::equal(ops::normed_rotated(strided, 1e-6, rope),
                          ops::normed_rotated(packed, 1e-6, rope)))
        << dtype;
  }
}

// ------------------------------------------------------------------------------ attention

struct Heads {
  Tensor q, k, v;
};

Heads heads_in(at::ScalarType dtype) {
  return {.q = draw_floats({2, 4, 9, 64}, 11).to(dtype),
          .k = draw_floats({1, 2, 12, 64}, 12).to(dtype),
          .v = draw_floats({1, 2, 12, 64}, 13).to(dtype)};
}

TEST(Attention, RefusesHeadsOfOtherWidthsAndLengths) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto x = heads_in(dtype);
    const auto k = x.k.expand({2, 2, 12, 64}), v = x.v.expand({2, 2, 12, 64});
    EXPECT_NO_THROW((void)ops::attention(x.q, k, v));
    EXPECT_ANY_THROW((void)ops::attention(x.q, k.narrow(3, 0, 32), v.narrow(3, 0, 32))) << dtype;
    EXPECT_ANY_THROW((void)ops::attention(x.q.narrow(3, 0, 32), k, v)) << dtype;
    EXPECT_THROW((void)ops::attention(x.q, k, v.narrow(2, 0, 11)), Error) << dtype;
    EXPECT_THROW((void)ops::attention(x.q, k.narrow(0, 0, 1), v), Error) << dtype;
    EXPECT_THROW((void)ops::attention(x.q, k.narrow(1, 0, 0), v.narrow(1, 0, 0)), Error) << dtype;
    EXPECT_THROW((void)ops::attention(x.q[0], k[0], v[0]), Error) << dtype;
  }
}

}  // namespace braid::mixed_operands_test
