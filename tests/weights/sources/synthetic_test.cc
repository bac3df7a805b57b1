// Random weights are the same for every share a rank takes.
#include "weights/sources/synthetic.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "weights/sharding.h"
#include "weights/weights.h"

namespace braid::synthetic_test {

const at::TensorOptions kOptions = at::TensorOptions(at::kFloat);

Shard all_of(std::int64_t rows) { return {.rows = {{.begin = 0, .count = rows}}}; }

TEST(Synthetic, SharesAreSlicesOfTheWhole) {
  const SyntheticValues values;
  // longer than the period of the values
  const auto whole = values.share("a.weight", {1500, 1000}, all_of(1500), kOptions);
  const auto rows = values.share("a.weight", {1500, 1000},
                                 {.rows = {{7, 3}, {1400, 100}}, .columns = {}}, kOptions);
  EXPECT_TRUE(at::equal(rows, at::cat({whole.narrow(0, 7, 3), whole.narrow(0, 1400, 100)})));
  const auto columns = values.share(
      "a.weight", {1500, 1000}, {.rows = {{0, 1500}}, .columns = {{5, 2}, {900, 100}}}, kOptions);
  EXPECT_TRUE(at::equal(columns, at::cat({whole.narrow(1, 5, 2), whole.narrow(1, 900, 100)}, 1)));
}

TEST(Synthetic, ValuesLookLikeAnInitialisedLayers) {
  const SyntheticValues values;
  const auto matrix = values.share("a.weight", {400, 900}, all_of(400), kOptions);
  EXPECT_NEAR(matrix.std().item<double>(), 1 / 30.0, 0.001);
  EXPECT_NEAR(matrix.mean().item<double>(), 0, 0.001);
  EXPECT_NEAR(
      values.share("a.query_norm.scale", {5000}, all_of(5000), kOptions).mean().item<double>(), 1,
      0.01);
  EXPECT_NEAR(values.share("a.bias", {5000}, all_of(5000), kOptions).mean().item<double>(), 0,
              0.01);
  EXPECT_FALSE(at::equal(matrix, values.share("b.weight", {400, 900}, all_of(400), kOptions)));
}

TEST(Synthetic, WeightsHaveWhateverIsAskedForInTheRightType) {
  const auto weights = Weights::synthetic({.dtype = at::kBFloat16});
  const auto x = (weights / "block" / 3).tensor("weight", {8, 4});
  EXPECT_EQ(x.sizes(), at::IntArrayRef({8, 4}));
  EXPECT_EQ(x.scalar_type(), at::kBFloat16);
  weights.finish();
}

}  // namespace braid::synthetic_test
