// Our own attention against float64.
#include "attention_cases.h"
#include "ops/reference.h"

namespace braid::attention_test {

class OwnAttention : public testing::TestWithParam<Sizes> {};

TEST_P(OwnAttention, EqualsFloat64) { expect_exact(draw(GetParam()), 3e-6); }

TEST_P(OwnAttention, IsAsExactAsLibTorchs) {
  const auto x = draw(GetParam());
  const auto want = exact(x).out_BHLD;
  const auto theirs = relative_error(ops::reference::attention(x.q, x.k, x.v), want);
  for (const auto& [name, kernels] : all_kernels()) {
    const auto ours = relative_error(ops::cpu::attend(x.q, x.k, x.v, kernels).out_BHLD, want);
    EXPECT_LE(ours, 1.2 * theirs) << name;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Sizes, OwnAttention,
    testing::Values(Sizes{1, 1, 1, 1, 32}, Sizes{1, 2, 1, 31, 64}, Sizes{2, 1, 31, 32, 32},
                    Sizes{1, 1, 32, 33, 128}, Sizes{1, 3, 33, 63, 64}, Sizes{2, 2, 63, 65, 128},
                    Sizes{1, 1, 65, 513, 256}, Sizes{1, 1, 65, 130, 512}, Sizes{1, 2, 97, 256, 32},
                    Sizes{1, 1, 5, 129, 96}, Sizes{1, 4, 70, 128, 64}, Sizes{2, 1, 300, 290, 64},
                    Sizes{1, 1, 513, 1, 128}, Sizes{1, 1, 70, 1100, 128}, Sizes{1, 5, 2, 2, 160},
                    Sizes{2, 4, 33, 40, 64, 2}, Sizes{1, 8, 70, 65, 32, 4},
                    Sizes{2, 3, 1, 7, 32, 3}, Sizes{1, 2, 40, 70, 72}, Sizes{2, 4, 33, 65, 80, 2},
                    Sizes{1, 1, 9, 300, 101}));

// ------------------------------------------------------------------------------ causal mask

Tensor causally(const Inputs& x, const AttentionKernels* kernels) {
  return ops::cpu::attend(x.q, x.k, x.v, kernels, ops::cpu::SeenKeys::kCausal).out_BHLD;
}

class OwnCausalAttention : public testing::TestWithParam<Sizes> {};

TEST_P(OwnCausalAttention, EqualsFloat64) {
  const auto x = draw(GetParam());
  const auto unit = kUnit * x.v.abs().max().item<double>();
  for (const auto& [name, kernels] : all_kernels()) {
    const auto got = ops::cpu::attend(x.q, x.k, x.v, kernels, ops::cpu::SeenKeys::kCausal);
    for (const std::int64_t i : {std::int64_t(0), x.q.size(2) / 3, x.q.size(2) - 1}) {
      const auto want =
          exact({x.q.narrow(2, i, 1), x.k.narrow(2, 0, i + 1), x.v.narrow(2, 0, i + 1)});
      EXPECT_LT(largest_error(got.out_BHLD.narrow(2, i, 1), want.out_BHLD), unit) << name << i;
      EXPECT_LT(largest_error(got.lse_BHL.narrow(2, i, 1), want.lse_BHL), 3e-6) << name << i;
    }
  }
}

TEST_P(OwnCausalAttention, SeesNothingOfWhatFollows) {
  const auto x = draw(GetParam());
  const auto length = x.q.size(2);
  for (const auto& [name, kernels] : all_kernels()) {
    const auto want = causally(x, kernels);
    for (const auto i : {length / 5, length / 2}) {
      const Inputs y{x.q, x.k.clone(), x.v.clone()};
      y.k.narrow(2, i + 1, length - i - 1).mul_(-40);
      y.v.narrow(2, i + 1, length - i - 1).mul_(100);
      EXPECT_TRUE(at::equal(causally(y, kernels).narrow(2, 0, i + 1), want.narrow(2, 0, i + 1)))
          << name << " " << i;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, OwnCausalAttention,
                         testing::Values(Sizes{1, 1, 1, 1, 32}, Sizes{2, 2, 33, 33, 64},
                                         Sizes{1, 4, 300, 300, 64, 2}, Sizes{1, 1, 513, 513, 128},
                                         Sizes{1, 8, 130, 130, 32, 4}, Sizes{1, 2, 97, 97, 96},
                                         Sizes{1, 1, 40, 40, 72}));

TEST(OwnCausalAttentions, TakeAsManyQueriesAsKeys) {
  const auto x = draw(Sizes{1, 1, 5, 7, 32});
  EXPECT_ANY_THROW(causally(x, &loops()));
}

// --------------------------------------------------------------------------------- softmax

TEST(OwnAttentionsSoftmax, IsExactToAFewUnitsOfFloat32) {
  // scores of two keys that differ by 0 to 90
  const auto queries = at::linspace(0, 90 * std::sqrt(32.0), 4001, at::kFloat);
  auto x = Inputs{.q = at::zeros({1, 1, 4001, 32}, at::kBFloat16),
                  .k = at::zeros({1, 1, 2, 32}, at::kBFloat16),
                  .v = at::ones({1, 1, 2, 32}, at::kBFloat16)};
  x.q.select(-1, 0).copy_(queries);
  x.q.select(-1, 1).copy_(queries - x.q.select(-1, 0).squeeze(0).squeeze(0));
  x.k.select(2, 1).narrow(-1, 0, 2).fill_(-1);
  expect_exact(x, 3e-7);
}

TEST(OwnAttentionsSoftmax, TakesScoresFarFrom0) {
  for (const double sign : {1, -1}) {
    auto x = draw(Sizes{1, 2, 40, 300, 64});
    x.q.select(-1, 0).fill_(25 * sign);
    x.k.select(-1, 0).fill_(32);  // 100 more, or less, than the others
    expect_exact(x, 3e-5);
  }
}

TEST(OwnAttentionsSoftmax, FollowsScoresThatGrowOrShrink) {
  for (const std::int64_t queries : {20, 37, 100})  // 20: parts of one strip follow directly
    for (const double last : {20, -20}) {
      auto x = draw(Sizes{1, 1, queries, 1100, 32});
      x.q.select(-1, 0).fill_(std::sqrt(32.0));
      x.k.select(-1, 0).copy_(at::linspace(-last, last, 1100, at::kFloat));
      expect_exact(x, 2e-5);
    }
}

TEST(OwnAttentionsSoftmax, GivesOneKeyAllWhereItDominates) {
  auto x = draw(Sizes{1, 1, 50, 600, 64});
  for (const std::int64_t key : {0, 127, 128, 599}) {
    auto k = x.k.clone();
    k.mul_(0.01).select(2, key).copy_(x.q.select(2, 7) * 16);
    for (const auto& [name, kernels] : all_kernels()) {
      const auto got = ops::cpu::attend(x.q, k, x.v, kernels).out_BHLD;
      EXPECT_TRUE(at::equal(got.select(2, 7), x.v.select(2, key))) << name << " " << key;
    }
  }
}

// All weights but one are equal, and so are their roundings. Dividing by the sum of unrounded
// weights would make values up to 2^-8 larger or smaller.
TEST(OwnAttentionsSoftmax, LeavesEqualValuesAsTheyAre) {
  auto x = draw(Sizes{1, 1, 400, 50, 32});
  x.q.zero_().select(-1, 0).copy_(at::linspace(0, std::sqrt(32.0), 400, at::kFloat));
  x.k.zero_().select(2, 20).select(-1, 0).fill_(1);
  x.v.copy_(x.v.select(2, 0).unsqueeze(2).expand_as(x.v).clone());
  for (const auto& [name, kernels] : all_kernels())
    EXPECT_TRUE(at::equal(ops::cpu::attend(x.q, x.k, x.v, kernels).out_BHLD,
                          x.v.narrow(2, 0, 1).expand_as(x.q)))
        << name;
}

TEST(OwnAttentionsSoftmax, AveragesEqualKeys) {
  auto x = draw(Sizes{1, 1, 33, 512, 32});
  x.k.copy_(x.k.select(2, 0).unsqueeze(2).expand_as(x.k).clone());
  const auto want = x.v.to(at::kDouble).mean(2, true).expand_as(x.q);
  for (const auto& [name, kernels] : all_kernels())
    EXPECT_LT(largest_error(ops::cpu::attend(x.q, x.k, x.v, kernels).out_BHLD, want), kUnit / 4)
        << name;
}

// Overflowing scores get no weight beside a finite one, whichever keys come first.
TEST(OwnAttentionsSoftmax, LeavesOutWhatIsInfinitelyFar) {
  auto x = draw(Sizes{1, 1, 30, 300, 32});
  x.q.fill_(1e20);
  x.k.narrow(2, 0, 299).fill_(-1e20);
  x.k.select(2, 299).zero_();
  for (const auto& [name, kernels] : all_kernels())
    EXPECT_TRUE(at::equal(ops::cpu::attend(x.q, x.k, x.v, kernels).out_BHLD,
                          x.v.select(2, 299).unsqueeze(2).expand_as(x.q)))
        << name;
}

TEST(OwnAttentionsSoftmax, KeepsWhatIsNoNumberInItsRow) {
  auto x = draw(Sizes{1, 2, 70, 300, 64});
  for (const auto& [name, kernels] : all_kernels()) {
    const auto want = ops::cpu::attend(x.q, x.k, x.v, kernels);
    auto q = x.q.clone();
    q[0][1][38][3] = NAN;
    const auto got = ops::cpu::attend(q, x.k, x.v, kernels);
    EXPECT_TRUE(got.out_BHLD[0][1][38].isnan().all().item<bool>()) << name;
    EXPECT_TRUE(got.lse_BHL[0][1][38].isnan().item<bool>()) << name;
    got.out_BHLD[0][1][38].copy_(want.out_BHLD[0][1][38]);
    got.lse_BHL[0][1][38].copy_(want.lse_BHL[0][1][38]);
    EXPECT_TRUE(at::equal(got.out_BHLD, want.out_BHLD)) << name;
    EXPECT_TRUE(at::equal(got.lse_BHL, want.lse_BHL)) << name;
  }
}

TEST(OwnAttentionsSoftmax, IsMergedByItsLogarithms) {
  const auto x = draw(Sizes{2, 2, 45, 700, 64});
  const auto want = exact(x).out_BHLD;
  for (const auto& [name, kernels] : all_kernels()) {
    const auto part = [&, &attend_by = kernels](std::int64_t begin, std::int64_t count) {
      return ops::cpu::attend(x.q, x.k.narrow(2, begin, count), x.v.narrow(2, begin, count),
                              attend_by);
    };
    const auto a = part(0, 301), b = part(301, 399);
    const auto lse = at::logaddexp(a.lse_BHL, b.lse_BHL);
    const auto merged = a.out_BHLD * at::exp(a.lse_BHL - lse).unsqueeze(-1) +
                        b.out_BHLD * at::exp(b.lse_BHL - lse).unsqueeze(-1);
    EXPECT_LT(relative_error(merged, want), 1.2 * relative_error(part(0, 700).out_BHLD, want))
        << name;
    EXPECT_LT(largest_error(lse, exact(x).lse_BHL), 3e-6) << name;
  }
}

}  // namespace braid::attention_test
