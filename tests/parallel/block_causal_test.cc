// Attention of a sequence causal by blocks over ranks, against one product with the whole mask in
// float64; together and with the prefix kept.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "comm/thread.h"
#include "parallel/layout.h"

namespace braid::block_causal_test {

constexpr std::int64_t kText = 7, kPicture = 9, kImage = 13, kPrefix = kText + kPicture;
constexpr std::int64_t kHeads = 6, kKeyHeads = 2, kBatch = 2;

// A text whose first three tokens stand before a picture.
Tensor spans() {
  std::vector<std::int32_t> rows;
  const auto add = [&](std::int64_t place, std::int64_t last) {
    rows.push_back(std::int32_t(place));
    rows.push_back(std::int32_t(last));
  };
  for (std::int64_t i = 0; i < kText; ++i) {
    const auto place = i < 3 ? i : i + kPicture;
    add(place, place);
  }
  for (std::int64_t i = 0; i < kPicture; ++i) add(3 + i, 3 + kPicture - 1);
  return at::tensor(rows, at::kInt).view({kPrefix, 2});
}

Tensor drawn(std::uint64_t seed, std::int64_t heads) {
  return at::randn({kBatch, kPrefix + kImage, heads, 8}, at::detail::createCPUGenerator(seed),
                   at::kFloat);
}

struct Tokens3 {
  Tensor q_BLHD = drawn(1, kHeads), k_BLGD = drawn(2, kKeyHeads), v_BLGD = drawn(3, kKeyHeads);
};

// softmax(q k / sqrt(D) + mask) v as it is defined: text sees what stands before it, a picture also
// itself, and the image everything.
Tensor expected() {
  const Tokens3 x;
  const auto heads = [](const Tensor& t_BLHD) {
    const auto t = t_BLHD.transpose(1, 2).to(at::kDouble);
    return t.repeat_interleave(kHeads / t.size(1), 1);
  };
  auto is_seen = at::ones({kPrefix + kImage, kPrefix + kImage}, at::kBool);
  const auto span = spans();
  for (std::int64_t q = 0; q < kPrefix; ++q) {
    is_seen[q].narrow(0, kPrefix, kImage).fill_(false);
    for (std::int64_t k = 0; k < kPrefix; ++k)
      is_seen[q][k] = span[k][0].item<int>() <= span[q][1].item<int>();
  }
  auto scores = at::matmul(heads(x.q_BLHD), heads(x.k_BLGD).transpose(2, 3)) / std::sqrt(8.0);
  scores.masked_fill_(is_seen.logical_not(), -INFINITY);
  return at::matmul(at::softmax(scores, -1), heads(x.v_BLGD)).transpose(1, 2).flatten(2);
}

// A rank's share of each run of tokens, and what ranks have of them as one.
Tensor share_of_runs(const Tensor& x, std::int64_t dim, const std::vector<std::int64_t>& runs,
                     const Group& ranks) {
  std::vector<Tensor> shares;
  for (const auto& run : x.split_with_sizes(runs, dim))
    shares.push_back(take_share(run, dim, ranks));
  return at::cat(shares, dim);
}
Tensor whole_runs(const Tensor& x, const std::vector<std::int64_t>& runs, const Group& ranks) {
  std::vector<std::int64_t> mine;
  for (const auto run : runs) mine.push_back(share_of(run, ranks.rank(), ranks.size()).count);
  std::vector<Tensor> whole;
  for (const auto& part : x.split_with_sizes(mine, 1)) whole.push_back(ranks.all_gather(part, 1));
  return at::cat(whole, 1);
}

void expect_near(const Tensor& got, const Tensor& want) {
  EXPECT_LT((got.to(at::kDouble) - want).abs().max().item<double>(), 2e-6);
}

// A long prefix, whose mask is made for some queries at a time.
TEST(AttentionBySpans, IsThatOfAllQueriesAtOnce) {
  constexpr std::int64_t kLong = 3000;
  static_assert(kLong * kLong > kMaskedPairs);
  const auto random = at::detail::createCPUGenerator(4);
  const auto drawn = [&] { return at::randn({1, 1, kLong, 8}, random, at::kFloat); };
  const auto q = drawn(), k = drawn(), v = drawn();
  const auto place_L = at::arange(kLong, at::kInt);
  const auto span_L2 = at::stack({place_L, place_L.div(7, "floor").mul(7).add(6)}, 1);
  const auto whole = ops::masked_attention(q, k, v, seen_keys(span_L2, span_L2));
  const auto chunked = attention_by_spans(q, k, v, span_L2, span_L2);
  EXPECT_EQ(chunked.sizes(), whole.sizes());
  EXPECT_LT((chunked - whole).abs().max().item<float>(), 1e-6);
}

class BlockCausalOverRanks : public testing::TestWithParam<std::tuple<Degrees, RingForm>> {};
INSTANTIATE_TEST_SUITE_P(Layouts, BlockCausalOverRanks,
                         testing::Combine(testing::Values(Degrees{}, Degrees{.ring = 2},
                                                          Degrees{.ring = 3}, Degrees{.ulysses = 2},
                                                          Degrees{.ulysses = 4},
                                                          Degrees{.ring = 2, .ulysses = 3}),
                                          testing::Values(RingForm::kShift, RingForm::kGather)),
                         [](const auto& info) { return "layout" + std::to_string(info.index); });

TEST_P(BlockCausalOverRanks, AttendsAsTheWholeMaskSays) {
  const auto& [degrees, form] = GetParam();
  run_ranks({.size = degrees.product()}, [&, degrees = degrees, form = form](const Group& world) {
    const auto mesh = make_mesh(world, degrees);
    const std::vector<std::int64_t> runs = {kText, kPicture, kImage};
    const auto mine = [&](const Tensor& x) { return share_of_runs(x, 1, runs, mesh.context); };
    const Tokens3 x;
    const auto got = attend_behind_prefix(
        attend_over(mesh, form), mine(x.q_BLHD), mine(x.k_BLGD), mine(x.v_BLGD),
        share_of_runs(spans(), 0, {kText, kPicture}, mesh.context));
    expect_near(whole_runs(got, runs, mesh.context), expected());
  });
}

// The prefix alone once, then the image behind it: for each branch and picture its own.
TEST_P(BlockCausalOverRanks, AttendsToAKeptPrefix) {
  const auto& [degrees, form] = GetParam();
  run_ranks({.size = degrees.product()}, [&, degrees = degrees, form = form](const Group& world) {
    const auto mesh = make_mesh(world, degrees);
    ReferenceKvCache kept;
    const auto attend = attend_over(mesh, form, &kept);
    const Tokens3 x;
    // Evaluates `count` tokens from `first` on; those of branch 1 are twice as large.
    const auto evaluate = [&](std::int64_t first, const std::vector<std::int64_t>& runs,
                              const Tensor& span, int branch) {
      Tensor made;
      const auto part = kept.counted([&](const DenoiserInput&, const Tensor&) {
        const auto count = std::accumulate(runs.begin(), runs.end(), std::int64_t(0));
        const auto mine = [&](const Tensor& all) {
          return share_of_runs(all.narrow(1, first, count) * (1.0 + branch), 1, runs, mesh.context);
        };
        made = attend_behind_prefix(attend, mine(x.q_BLHD), mine(x.k_BLGD), mine(x.v_BLGD), span);
        return made;
      });
      DenoiserInput in;
      in.step.branch = branch;
      part(in, {});
      return whole_runs(made, runs, mesh.context);
    };
    const std::vector<std::int64_t> prefix = {kText, kPicture};
    const auto span = share_of_runs(spans(), 0, prefix, mesh.context);
    const auto none = span.narrow(0, 0, 0);
    kept.set_use(ReferenceKvCache::Use::kKeep, ReferenceKvCache::Of::kPrefix);
    expect_near(evaluate(0, prefix, span, 0), expected().narrow(1, 0, kPrefix));
    evaluate(0, prefix, span, 1);
    kept.set_use(ReferenceKvCache::Use::kAttend, ReferenceKvCache::Of::kPrefix);
    const auto all_bytes = world.all_reduce(at::full({1}, kept.bytes(), at::kLong));
    if (degrees.ulysses == 1) {
      EXPECT_EQ(all_bytes.item<std::int64_t>(), 2 * 2 * kBatch * kKeyHeads * kPrefix * 8 * 4);
    }
    for (int step = 0; step < 2; ++step) {
      expect_near(evaluate(kPrefix, {kImage}, none, 0), expected().narrow(1, kPrefix, kImage));
      const auto other = evaluate(kPrefix, {kImage}, none, 1);
      EXPECT_GT((other.to(at::kDouble) - expected().narrow(1, kPrefix, kImage))
                    .abs()
                    .max()
                    .item<double>(),
                0.1);
    }
    EXPECT_ANY_THROW(evaluate(kPrefix, {kImage}, none, 2));
  });
}

TEST(Attend, RefusesAMaskWhereItsFunctionHasNone) {
  const Attend attend = ops::attention;
  const Tokens3 x;
  EXPECT_ANY_THROW(attend_behind_prefix(attend, x.q_BLHD, x.k_BLGD, x.v_BLGD, spans()));
}

}  // namespace braid::block_causal_test
