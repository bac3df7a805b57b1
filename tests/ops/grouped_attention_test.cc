// Attention where several query heads share a key and value head, against float64 with repeated
// keys and values: on the CPU, and on a GPU if there is one.
#include "attention_cases.h"
#include "kernel_device.h"
#include "ops/ops.h"

namespace braid::grouped_attention_test {

struct Case {
  at::ScalarType dtype;
  Sizes sizes;
};

std::vector<at::Device> devices() {
  std::vector<at::Device> all{at::kCPU};
  if (kernel_device()) all.push_back(*kernel_device());
  return all;
}

class GroupedAttention : public testing::TestWithParam<Case> {
 protected:
  static Inputs inputs() {
    const auto x = draw(GetParam().sizes);
    return {x.q.to(GetParam().dtype), x.k.to(GetParam().dtype), x.v.to(GetParam().dtype)};
  }
  static Inputs on(const at::Device& device, const Inputs& x) {
    return {x.q.to(device), x.k.to(device), x.v.to(device)};
  }
  // float32: the order of summation; bfloat16: two roundings of the largest value.
  static double limit(const Inputs& x) {
    return (GetParam().dtype == at::kFloat ? 1e-6 : kUnit) * x.v.abs().max().item<double>();
  }
  // LibTorch's bfloat16 exponentials have 20 correct bits.
  static double lse_limit() { return GetParam().dtype == at::kFloat ? 3e-6 : 1e-4; }
};

TEST_P(GroupedAttention, EqualsRepeatedKeysAndValues) {
  const auto x = inputs();
  const auto want = exact(x);
  for (const auto& device : devices()) {
    const auto [q, k, v] = on(device, x);
    EXPECT_LT(largest_error(ops::attention(q, k, v).cpu(), want.out_BHLD), limit(x)) << device;
    const auto got = ops::attention_with_lse(q, k, v);
    EXPECT_EQ(got.out_BHLD.sizes(), x.q.sizes());
    EXPECT_LT(largest_error(got.out_BHLD.cpu(), want.out_BHLD), limit(x)) << device;
    EXPECT_LT(largest_error(got.lse_BHL.cpu(), want.lse_BHL), lse_limit()) << device;
  }
}

// Each query i alone, with the keys it sees.
Tensor causal_by_rows(const Inputs& x) {
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < x.q.size(2); ++i)
    rows.push_back(
        exact({x.q.narrow(2, i, 1), x.k.narrow(2, 0, i + 1), x.v.narrow(2, 0, i + 1)}).out_BHLD);
  return at::cat(rows, 2);
}

TEST_P(GroupedAttention, IsCausalWhereAsked) {
  const auto all = inputs();
  const auto length = std::min(all.q.size(2), all.k.size(2));
  const Inputs x{all.q.narrow(2, 0, length), all.k.narrow(2, 0, length),
                 all.v.narrow(2, 0, length)};
  for (const auto& device : devices()) {
    const auto [q, k, v] = on(device, x);
    const auto got = ops::causal_attention(q, k, v).cpu();
    EXPECT_LT(largest_error(got, causal_by_rows(x)), limit(x)) << device;
  }
}

// Query i sees every third key from i on, and the last.
TEST_P(GroupedAttention, SeesTheKeysThatAMaskMarks) {
  const auto x = inputs();
  const auto L = x.q.size(2), S = x.k.size(2);
  auto is_seen = at::zeros({L, S}, at::kBool);
  std::vector<Tensor> rows;
  for (std::int64_t i = 0; i < L; ++i) {
    for (auto key = i; key < S; key += 3) is_seen[i][key] = true;
    is_seen[i][S - 1] = true;
    const auto seen = at::nonzero(is_seen[i]).flatten();
    const auto of_seen = [&](const Tensor& all) { return all.index_select(2, seen); };
    rows.push_back(exact({x.q.narrow(2, i, 1), of_seen(x.k), of_seen(x.v)}).out_BHLD);
  }
  for (const auto& device : devices()) {
    const auto [q, k, v] = on(device, x);
    const auto got = ops::masked_attention(q, k, v, is_seen.to(device)).cpu();
    EXPECT_LT(largest_error(got, at::cat(rows, 2)), limit(x)) << device;
  }
}

INSTANTIATE_TEST_SUITE_P(Sizes, GroupedAttention,
                         testing::Values(Case{at::kFloat, {2, 4, 33, 40, 64, 2}},
                                         Case{at::kFloat, {1, 8, 5, 129, 48, 4}},
                                         Case{at::kFloat, {2, 3, 1, 7, 32, 3}},
                                         Case{at::kBFloat16, {2, 4, 33, 40, 64, 2}},
                                         Case{at::kBFloat16, {1, 8, 5, 129, 48, 4}},
                                         Case{at::kFloat, {1, 2, 9, 9, 64}},
                                         Case{at::kFloat, {1, 2, 9, 9, 64}}));

TEST(GroupedAttentionWithoutKeys, HasWholeRowsForTheQueries) {
  const auto x = draw(Sizes{1, 4, 3, 0, 64, 2});
  const auto got = ops::attention_with_lse(x.q, x.k, x.v);
  EXPECT_EQ(got.out_BHLD.sizes(), x.q.sizes());
  EXPECT_EQ(got.lse_BHL.sizes(), x.q.sizes().slice(0, 3));
  EXPECT_TRUE(got.lse_BHL.isneginf().all().item<bool>());
}

TEST(GroupedAttentionsHeads, AreRefusedWhereTheyCannotBeShared) {
  const auto q = draw({1, 4, 5, 32}, 1), k = draw({1, 3, 7, 32}, 2), v = draw({1, 2, 7, 32}, 3);
  EXPECT_ANY_THROW(ops::attention(q, k, k));
  EXPECT_ANY_THROW(ops::attention_with_lse(q, k, k));
  EXPECT_ANY_THROW(ops::attention(q, v, k));
  EXPECT_ANY_THROW(ops::attention(v, q, q));
  EXPECT_ANY_THROW(ops::causal_attention(q, v, v));
  EXPECT_ANY_THROW(ops::masked_attention(q, q, q, at::ones({5, 4}, at::kBool)));
}

// LibTorch's kernel with an LSE would read the keys of pictures that are not there.
TEST(AttentionsPictures, AreRefusedWhereQueriesAndKeysHaveNotAsMany) {
  for (const auto dtype : {at::kFloat, at::kBFloat16}) {
    const auto two = draw({2, 2, 5, 64}, 1).to(dtype), one = two.narrow(0, 0, 1);
    EXPECT_ANY_THROW(ops::attention(two, one, one));
    EXPECT_ANY_THROW(ops::attention_with_lse(two, one, one));
    EXPECT_ANY_THROW(ops::attention_with_lse(one, two, two));
  }
}

}  // namespace braid::grouped_attention_test
