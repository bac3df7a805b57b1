// Operations on rows of tokens, as users meet them: views of any strides, modulations that pictures
// share, no tokens at all, NaN, and several threads.
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <gtest/gtest.h>

#include <array>
#include <cmath>

#include "ops/ops.h"
#include "use_threads.h"

namespace braid::row_ops_test {

// Operands that fit every operation: tokens [B L C] of H heads, modulations [B 1 C].
struct Given {
  Tensor a, b, c;
  Modulation m;
  Tensor weight;  // [C]
  HalfSplitRope halves;
  Rope rope;  // for twice as many tokens
  std::int64_t heads;

  std::vector<Tensor*> activations() {
    return {&a, &b, &c, &m.shift, &m.scale, &m.gate, &weight, &halves.cos, &halves.sin};
  }
};

struct Size {
  std::int64_t batch, tokens, heads, head_width;
};

Given draw(const Size& size, at::ScalarType dtype) {
  const auto generator = at::detail::createCPUGenerator(11);
  const auto some = [&](at::IntArrayRef shape) {
    return at::randn(shape, generator, at::kFloat).to(dtype);
  };
  const auto [batch, tokens, heads, head_width] = size;
  const auto width = heads * head_width;
  const auto token = [&] { return some({batch, tokens, width}); };
  const auto modulation = [&] { return some({batch, 1, width}); };
  const auto angles =
      at::randn({2 * tokens, head_width / 2}, generator, at::kFloat).repeat_interleave(2, 1);
  return {.a = token(),
          .b = token(),
          .c = token(),
          .m = {.shift = modulation(), .scale = modulation(), .gate = modulation()},
          .weight = some({width}),
          .halves = {some({tokens, head_width / 2}), some({tokens, head_width / 2})},
          .rope = {.cos = angles.cos(), .sin = angles.sin()},
          .heads = heads};
}

template <class Change>
Given changed(Given given, Change change) {
  for (auto* const x : given.activations()) *x = change(*x);
  return given;
}

Given exact(const Given& given) {
  return changed(given, [](const Tensor& x) { return x.to(at::kDouble); });
}

struct Operation {
  const char* name;
  Tensor (*run)(const Given& g);
};

Tensor in_heads(const Tensor& x, const Given& g) { return x.unflatten(-1, {g.heads, -1}); }

const Operation kOperations[] = {
    {"gelu", [](const Given& g) { return ops::gelu(g.a); }},
    {"modulated_norm", [](const Given& g) { return ops::modulated_norm(g.a, g.m); }},
    {"gated_residual", [](const Given& g) { return ops::gated_residual(g.a, g.m.gate, g.b); }},
    {"gated_residual_norm",
     [](const Given& g) {
       const auto both =
           ops::gated_residual_norm(g.a, g.m.gate, g.b, g.m, ops::InputForm::kNumbers);
       return at::cat({both.sum_BLC, both.normed.x}, -1);
     }},
    {"joined_gelu", [](const Given& g) { return ops::joined_gelu(g.a, g.b); }},
    {"swiglu", [](const Given& g) { return ops::swiglu(g.a, g.b); }},
    {"joined_swiglu", [](const Given& g) { return ops::joined_swiglu(g.a, g.b, g.c); }},
    {"rms_norm", [](const Given& g) { return ops::rms_norm(g.a, g.weight, 1e-6); }},
    {"llama_rms_norm", [](const Given& g) { return ops::llama_rms_norm(g.a, g.weight, 1e-6); }},
    {"zero_centred_rms_norm",
     [](const Given& g) { return ops::zero_centred_rms_norm(g.a, g.weight, 1e-6); }},
    {"modulated_rms_norm",
     [](const Given& g) { return ops::modulated_rms_norm(g.a, g.weight, g.m, 1e-6); }},
    {"sigmoid_gated", [](const Given& g) { return ops::sigmoid_gated(g.a, g.b); }},
    {"rotate_halves",
     [](const Given& g) { return ops::rotate_halves(in_heads(g.a, g), g.halves).flatten(2); }},
    {"normed_rotated",
     [](const Given& g) {
       const auto weights = g.weight.unflatten(0, {g.heads, -1});
       const std::array parts = {ops::NormedHeads{in_heads(g.a, g), weights[0]},
                                 ops::NormedHeads{in_heads(g.b, g), weights[1]}};
       return ops::normed_rotated(parts, 1e-6, g.rope).flatten(2);
     }},
    {"euler_step", [](const Given& g) { return ops::euler_step(g.a, g.b, -0.25); }},
};

// A few roundings of values near the largest.
double limit_of(at::ScalarType dtype) { return dtype == at::kFloat ? 1e-5 : 1.0 / 64; }

double difference(const Tensor& got, const Tensor& want) {
  const auto largest = want.to(at::kDouble).abs().max().clamp_min(1e-30);
  return ((got.to(at::kDouble) - want.to(at::kDouble)).abs().max() / largest).item<double>();
}

constexpr at::ScalarType kDtypes[] = {at::kFloat, at::kBFloat16};
constexpr Size kSmall{.batch = 3, .tokens = 5, .heads = 3, .head_width = 10};

TEST(RowOps, TakeViewsOfAnyStrides) {
  using View = Tensor (*)(const Tensor&);
  const View views[] = {
      [](const Tensor& x) {
        return at::stack({x, -x}, -1).select(-1, 0);
      },
      [](const Tensor& x) {
        return at::cat({x, -x}, -1).narrow(-1, 0, x.size(-1));
      },
      [](const Tensor& x) {
        return at::stack({-x, x}, 1).select(1, 1);
      },
      [](const Tensor& x) { return x.transpose(0, -1).contiguous().transpose(0, -1); }};
  for (const auto dtype : kDtypes) {
    const auto given = draw(kSmall, dtype);
    for (const auto& [name, run] : kOperations) {
      const auto want = run(exact(given));
      for (const auto& view : views)
        EXPECT_LT(difference(run(changed(given, view)), want), limit_of(dtype))
            << name << " " << dtype;
    }
  }
}

TEST(RowOps, TakeModulationsThatAllPicturesShare) {
  for (const auto dtype : kDtypes) {
    auto one = draw(kSmall, dtype);
    auto each = one;
    for (auto* const x : {&one.m.shift, &one.m.scale, &one.m.gate}) *x = x->narrow(0, 1, 1);
    each.m = {one.m.shift.repeat({3, 1, 1}), one.m.scale.repeat({3, 1, 1}),
              one.m.gate.repeat({3, 1, 1})};
    for (const auto& [name, run] : kOperations)
      EXPECT_TRUE(at::equal(run(one), run(each))) << name << " " << dtype;
  }
}

// Large enough that five threads get a share each.
TEST(RowOps, AreTheSameForAnyNumberOfThreads) {
  for (const auto dtype : kDtypes) {
    const auto given = draw({.batch = 2, .tokens = 41, .heads = 3, .head_width = 344}, dtype);
    for (const auto& [name, run] : kOperations) {
      const auto by = [&, run = run](int threads) {
        const UseThreads use(threads);
        return run(given);
      };
      const auto one = by(1);
      EXPECT_LT(difference(one, run(exact(given))), limit_of(dtype)) << name << " " << dtype;
      for (int threads = 2; threads <= 5; ++threads)
        EXPECT_TRUE(at::equal(one, by(threads))) << name << " " << dtype << " " << threads;
    }
  }
}

TEST(RowOps, MayHaveNoTokens) {
  for (const auto dtype : kDtypes)
    for (const auto& size : {Size{2, 0, 3, 10}, Size{0, 5, 3, 10}})
      for (const auto& [name, run] : kOperations) {
        const auto got = run(draw(size, dtype));
        EXPECT_EQ(got.size(0), size.batch) << name;
        EXPECT_EQ(got.numel(), 0) << name;
      }
}

TEST(RowOps, RotateNoHeads) {
  for (const auto dtype : kDtypes) {
    const auto heads = at::zeros({2, 3, 0, 10}, dtype);
    const auto table = at::ones({3, 10}), half = at::ones({3, 5}, dtype);
    const std::array parts = {ops::NormedHeads{heads, at::ones({10}, dtype)}};
    EXPECT_EQ(ops::normed_rotated(parts, 1e-6, {.cos = table, .sin = table}).sizes(),
              heads.sizes());
    EXPECT_EQ(ops::rotate_halves(heads, {.cos = half, .sin = half}).sizes(), heads.sizes());
  }
}

// Every operand that a result depends on, in rows of several vectors and a remainder.
TEST(RowOps, KeepWhatIsNoNumberInItsToken) {
  for (const auto dtype : kDtypes)
    for (const std::int64_t head_width : {10, 50})
      for (Tensor Given::*const operand : {&Given::a, &Given::b, &Given::c}) {
        const auto given =
            draw({.batch = 3, .tokens = 5, .heads = 3, .head_width = head_width}, dtype);
        const auto with = [&](double number) {
          auto changed = given;
          changed.*operand = (given.*operand).clone();
          (changed.*operand)[1][2][7] = number;
          return changed;
        };
        for (const auto& [name, run] : kOperations) {
          auto got = run(with(NAN));
          const auto want = run(given);
          const bool depends = !at::equal(run(with(3)), want);
          EXPECT_EQ(got[1].isnan().any().item<bool>(), depends) << name << " " << dtype;
          // normed_rotated() returns b's tokens behind a's.
          const auto token = got.size(1) == given.a.size(1) || operand == &Given::a ? 2 : 7;
          got[1][token] = want[1][token];
          EXPECT_TRUE(at::equal(got, want)) << name << " " << dtype;
        }
      }
}

// Rows are computed in runs of several vectors, then in vectors, then what is left.
TEST(RowOps, TakeRowsOfAnyWidth) {
  for (const auto dtype : kDtypes)
    for (std::int64_t half = 1; half <= 70; ++half) {
      const auto given = draw({.batch = 1, .tokens = 2, .heads = 2, .head_width = 2 * half}, dtype);
      for (const auto& [name, run] : kOperations)
        EXPECT_LT(difference(run(given), run(exact(given))), limit_of(dtype))
            << name << " " << dtype << " " << 2 * half;
    }
}

// Kernels do not look at sizes again: what fits nothing would be read out of bounds.
TEST(RowOps, RefusePartsThatDoNotFitTogether) {
  const auto heads = at::zeros({2, 3, 4, 10}), weight = at::ones({10});
  const auto joined = [&](const Tensor& second, const Tensor& its_weight, std::int64_t tokens) {
    const std::array parts = {ops::NormedHeads{heads, weight},
                              ops::NormedHeads{second, its_weight}};
    const auto table = at::ones({tokens, 10});
    (void)ops::normed_rotated(parts, 1e-6, {.cos = table, .sin = table});
  };
  EXPECT_NO_THROW(joined(heads, weight, 6));
  EXPECT_ANY_THROW(joined(heads, at::ones({9}), 6));
  EXPECT_ANY_THROW(joined(heads.narrow(0, 0, 1), weight, 6));
  EXPECT_ANY_THROW(joined(heads.narrow(2, 0, 3), weight, 6));
  EXPECT_ANY_THROW(joined(heads.flatten(2), weight, 6));
  EXPECT_ANY_THROW(joined(heads.narrow(1, 0, 2), weight, 6));
  const auto x = at::zeros({2, 3, 8});
  EXPECT_ANY_THROW((void)ops::euler_step(x, at::zeros({2, 3, 1}), 1));
  EXPECT_ANY_THROW((void)ops::euler_step(x, at::zeros({1, 3, 8}), 1));
}

// float16 and float64 go to the definitions, which work in place where they can.
TEST(RowOps, LeaveTheirInputsAsTheyAre) {
  for (const auto dtype : {at::kFloat, at::kBFloat16, at::kHalf, at::kDouble})
    for (const auto& [name, run] : kOperations) {
      auto given = draw(kSmall, dtype);
      auto before = changed(given, [](const Tensor& x) { return x.clone(); });
      (void)run(given);
      const auto now = given.activations(), then = before.activations();
      for (std::size_t i = 0; i < now.size(); ++i)
        EXPECT_TRUE(at::equal(*now[i], *then[i])) << name << " " << dtype << " operand " << i;
    }
}

}  // namespace braid::row_ops_test
