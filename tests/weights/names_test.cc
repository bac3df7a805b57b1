// Spellings: a table row maps modules, carries stars over, and concatenates or falls back.
#include "weights/names.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace braid::names_test {

using testing::ElementsAre;

TEST(Names, MatchSegmentBySegment) {
  EXPECT_TRUE(matches("a.*.c", "a.7.c"));
  EXPECT_TRUE(matches("*", "a"));
  EXPECT_FALSE(matches("a.*.c", "a.7.8.c"));
  EXPECT_FALSE(matches("a.*", "a"));
  EXPECT_FALSE(matches("a.b", "a.bc"));
  EXPECT_TRUE(matches("a.*.**", "a.7.b"));
  EXPECT_TRUE(matches("a.**", "a.7.b.c"));
  EXPECT_FALSE(matches("a.**", "a"));
  EXPECT_FALSE(matches("a.**", "ab.c"));
}

TEST(Names, AreTheSameWhereNoRowMatches) {
  const auto origins = origins_of({.prefix = "p."}, "x.weight");
  ASSERT_EQ(origins.size(), 1u);
  EXPECT_THAT(origins[0].tensors, ElementsAre("p.x.weight"));
}

TEST(Names, CarryIndicesAndTheTensorsNameOver) {
  const Names names{.spellings = {{"d.*.qkv", {"t.*.to_q", "t.*.to_k"}, {RowOrder::kSwapHalves}}}};
  const auto origins = origins_of(names, "d.12.qkv.bias");
  ASSERT_EQ(origins.size(), 1u);
  EXPECT_THAT(origins[0].tensors, ElementsAre("t.12.to_q.bias", "t.12.to_k.bias"));
  EXPECT_EQ(origins[0].order.way, RowOrder::kSwapHalves);
}

TEST(Names, SeveralRowsAreAlternatives) {
  const Names names{.spellings = {{"shared", {"shared"}}, {"shared", {"embed"}}}};
  const auto origins = origins_of(names, "shared.weight");
  ASSERT_EQ(origins.size(), 2u);
  EXPECT_THAT(origins[1].tensors, ElementsAre("embed.weight"));
}

TEST(Names, DoNotMatchHalfASegment) {
  const Names names{.spellings = {{"img_in", {"x_embedder"}}}};
  EXPECT_THAT(origins_of(names, "img_input.weight")[0].tensors, ElementsAre("img_input.weight"));
}

}  // namespace braid::names_test
