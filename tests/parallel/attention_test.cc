// Attention over ranks equals attention on one rank, for any number of heads and tokens, even none.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "base/error.h"
#include "comm/thread.h"
#include "parallel/layout.h"
#include "parallel/ulysses.h"

namespace braid::attention_test {

struct Shape {
  int heads, tokens;
};

Tensor random(std::uint64_t seed, at::IntArrayRef shape) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

// Every rank attends with its share of the tokens; the joined result is compared with one rank's.
double error_of(const Degrees& degrees, Shape shape, RingForm form) {
  const std::vector<std::int64_t> dims = {2, shape.heads, shape.tokens, 8};
  const auto q = random(1, dims), k = random(2, dims), v = random(3, dims);
  const auto want = ops::attention(q, k, v);
  double error = 0;
  run_ranks({.size = degrees.product()}, [&](const Group& world) {
    const auto mesh = make_mesh(world, degrees);
    const auto mine = [&](const Tensor& x) { return take_share(x, 2, mesh.context); };
    const auto got = attend_over(mesh, form)(mine(q), mine(k), mine(v));
    const auto all = mesh.context.all_gather(got, 2);
    if (world.rank() == 0) error = (all - want).abs().max().item<double>();
  });
  return error;
}

using Case = std::tuple<Degrees, Shape, RingForm>;
std::string name_of(const testing::TestParamInfo<Case>& info) {
  const auto& [degrees, shape, form] = info.param;
  return "ring" + std::to_string(degrees.ring) + "_ulysses" + std::to_string(degrees.ulysses) +
         "_heads" + std::to_string(shape.heads) + "_tokens" + std::to_string(shape.tokens) +
         (form == RingForm::kShift ? "_shift" : "_gather");
}

class AttentionOverRanks : public testing::TestWithParam<Case> {};

TEST_P(AttentionOverRanks, EqualsAttentionOnOne) {
  const auto& [degrees, shape, form] = GetParam();
  EXPECT_LT(error_of(degrees, shape, form), 2e-6);
}

INSTANTIATE_TEST_SUITE_P(
    Layouts, AttentionOverRanks,
    testing::Combine(testing::Values(Degrees{.ring = 2}, Degrees{.ring = 5}, Degrees{.ulysses = 2},
                                     Degrees{.ulysses = 5}, Degrees{.ring = 2, .ulysses = 2},
                                     Degrees{.ring = 3, .ulysses = 2}),
                     testing::Values(Shape{24, 60}, Shape{3, 17}, Shape{1, 7}, Shape{7, 4}),
                     testing::Values(RingForm::kShift, RingForm::kGather)),
    name_of);

// A single rank waits for nobody, so attention is where it notices a stop within a step.
TEST(AttendOver, NoticesAStop) {
  ThreadWorld world({.size = 1});
  std::stop_source stop;
  const auto x = random(1, {1, 2, 3, 8});
  const auto attend_twice = [&](const Group& g) {
    const auto attend = attend_over(make_mesh(g, {}));
    attend(x, x, x);
    stop.request_stop();
    attend(x, x, x);
  };
  EXPECT_THROW(world.run(attend_twice, stop.get_token()), Cancelled);
}

// Several query heads share a key head; a rank's heads may begin and end within such groups.
TEST(GroupedHeads, AreAttendedWithOverRanksAsOnOne) {
  for (const int ranks : {2, 3, 4, 5})
    for (const auto& [heads, groups] : {std::pair(6, 2), std::pair(8, 4), std::pair(9, 3)}) {
      const auto q = random(1, {2, heads, 11, 8});
      const auto k = random(2, {2, groups, 11, 8}), v = random(3, {2, groups, 11, 8});
      const auto want = ops::attention(q, k, v);
      run_ranks({.size = ranks}, [&](const Group& world) {
        const auto mine = [&](const Tensor& x) { return take_share(x, 2, world); };
        const auto got = ulysses(world, ops::attention)(mine(q), mine(k), mine(v));
        const auto all = world.all_gather(got, 2);
        EXPECT_LT((all - want).abs().max().item<double>(), 2e-6)
            << heads << " heads, " << groups << " groups, " << ranks << " ranks";
      });
    }
}

// A kind of token a family does not have is divided into empty shares.
TEST(SplitTokens, MayHaveNoneOfAKindButNotFewerThanRanks) {
  const auto input_of = [](std::int64_t text) {
    return DenoiserInput{.noise = {at::ones({1, 4, 2}), at::zeros({4, 3})},
                         .text = {at::ones({1, text, 2}), at::zeros({text, 3})},
                         .timestep_B = at::zeros({1})};
  };
  const auto run = [&](std::int64_t text) {
    run_ranks({.size = 2}, [&](const Group& world) {
      const auto predict =
          split_tokens(world, one_by_one([](const DenoiserInput& in) { return in.noise.x_BLC; }));
      EXPECT_EQ(predict({input_of(text)}).front().size(1), 4);
    });
  };
  run(0);
  run(2);
  EXPECT_THROW(run(1), InputError);
}

ops::PartialAttention merged(const ops::PartialAttention& a, const ops::PartialAttention& b) {
  const auto copy = [](const ops::PartialAttention& x) -> ops::PartialAttention {
    return {.out_BHLD = x.out_BHLD.clone(), .lse_BHL = x.lse_BHL};
  };
  auto sum = copy(a);
  merge_into(sum, copy(b));
  return sum;
}

TEST(Merge, TakesPartsInAnyOrderAndAnyNumber) {
  const auto q = random(1, {1, 2, 5, 8}), k = random(2, {1, 2, 9, 8}), v = random(3, {1, 2, 9, 8});
  const auto part = [&](std::int64_t begin, std::int64_t count) {
    return ops::attention_with_lse(q, k.narrow(2, begin, count), v.narrow(2, begin, count));
  };
  const auto want = ops::attention(q, k, v);
  const auto a = part(0, 4), b = part(4, 0), c = part(4, 5);
  for (const auto& all :
       {merged(merged(a, b), c), merged(merged(c, b), a), merged(b, merged(c, a))})
    EXPECT_TRUE(at::allclose(all.out_BHLD, want, 1e-5, 1e-6));
  const auto nothing = merged(b, b);
  EXPECT_TRUE(at::equal(nothing.out_BHLD, at::zeros_like(want)));
  EXPECT_TRUE(nothing.lse_BHL.isneginf().all().item<bool>());
}

// Scores of a few hundreds overflow in exponentials; a rank's may lie far below another's.
TEST(Merge, TakesScoresOfAnySize) {
  const auto q = random(1, {1, 1, 2, 8}), v = random(3, {1, 1, 6, 8});
  auto k = random(2, {1, 1, 6, 8});
  k.narrow(2, 0, 3) += 400 * q.narrow(2, 0, 1);
  const auto part = [&](std::int64_t begin) {
    return ops::attention_with_lse(q, k.narrow(2, begin, 3), v.narrow(2, begin, 3));
  };
  const auto all = merged(part(0), part(3));
  EXPECT_GT(all.lse_BHL.max().item<float>(), 100);
  EXPECT_TRUE(at::allclose(all.out_BHLD, ops::attention(q, k, v), 1e-4, 1e-5));
}

// Partial results are merged in float32, or each hop of a ring would round once more.
TEST(Ring, RoundsOnceInBfloat16) {
  const auto half = [](std::uint64_t seed) {
    return random(seed, {1, 2, 64, 8}).to(at::kBFloat16);
  };
  const auto q = half(1), k = half(2), v = half(3);
  const auto exact = ops::attention(q.to(at::kFloat), k.to(at::kFloat), v.to(at::kFloat));
  const auto error = [&](const Tensor& x) {
    return (x.to(at::kFloat) - exact).norm().item<double>();
  };
  const auto one = error(ops::attention(q, k, v));
  run_ranks({.size = 8}, [&](const Group& ranks) {
    const auto mine = [&](const Tensor& x) { return take_share(x, 2, ranks); };
    const auto got = ring(ranks, RingForm::kShift)(mine(q), mine(k), mine(v));
    EXPECT_EQ(got.scalar_type(), at::kBFloat16);
    EXPECT_LT(error(ranks.all_gather(got, 2)), 1.5 * one);
  });
}

TEST(AttentionWithLse, HasThreeDimsAlsoWhereTheyCouldBeMistaken) {
  // batch, heads and tokens all 1, or as many tokens as heads: a fourth dim would broadcast
  for (const auto& dims : {std::vector<std::int64_t>{1, 1, 1, 8}, {1, 8, 8, 8}, {2, 1, 3, 8}}) {
    const auto q = random(1, dims), k = random(2, dims), v = random(3, dims);
    const auto got = ops::attention_with_lse(q, k, v);
    const auto want = at::logsumexp(q.matmul(k.transpose(-1, -2)) / std::sqrt(8.0), -1);
    ASSERT_EQ(got.lse_BHL.dim(), 3);
    EXPECT_TRUE(at::allclose(got.lse_BHL, want, 1e-5, 1e-5));
    EXPECT_EQ(got.lse_BHL.scalar_type(), at::kFloat);
  }
}

TEST(Ulysses, MovesEachTokenOnceThereAndOnceBack) {
  run_ranks({.size = 2}, [](const Group& world) {
    const auto attend = ulysses(world, ops::attention);
    const auto x = random(std::uint64_t(world.rank()), {1, 4, 6, 8});
    attend(x, x, x);
    EXPECT_EQ(world.traffic().all_to_alls, 2);
    EXPECT_EQ(world.traffic().bytes, std::int64_t(4 * x.numel() * 4));
  });
}

}  // namespace braid::attention_test
