// How items are divided among ranks that take alike, and among those that do not.
#include "comm/shares.h"

#include <gmock/gmock.h>

#include "comm/mesh.h"
#include "message_of.h"

namespace braid::shares_test {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::int64_t> counts_of(std::int64_t total, const Shares& ranks) {
  std::vector<std::int64_t> counts;
  std::int64_t begin = 0;
  for (int r = 0; r < ranks.size(); ++r) {
    const auto share = share_of(total, r, ranks);
    EXPECT_EQ(share.begin, begin) << total << " over " << to_string(ranks) << ", rank " << r;
    begin += share.count;
    counts.push_back(share.count);
  }
  EXPECT_EQ(begin, total) << to_string(ranks);
  return counts;
}

TEST(Shares, OfRanksThatTakeAlikeDifferByOne) {
  EXPECT_THAT(counts_of(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(counts_of(2, 3), ElementsAre(1, 1, 0));
  EXPECT_THAT(counts_of(7, {3, {5, 5, 5}}), ElementsAre(3, 2, 2));
  EXPECT_EQ(Shares(3, {5, 5, 5}), Shares(3));
}

TEST(Shares, AreInProportion) {
  EXPECT_THAT(counts_of(10, {2, {3, 2}}), ElementsAre(6, 4));
  EXPECT_THAT(counts_of(24, {3, {8, 5, 3}}), ElementsAre(12, 8, 4));  // 12, 7.5, 4.5: to the first
  EXPECT_THAT(counts_of(5, {2, {1, 2}}), ElementsAre(2, 3));          // 1.67, 3.33
  EXPECT_THAT(counts_of(3, {2, {1000, 1}}), ElementsAre(3, 0));
}

// No other division is closer to the proportions: all are tried.
TEST(Shares, AreTheClosestWholeNumbers) {
  for (const auto& parts : {std::vector{1, 2}, {3, 2}, {7, 5}, {1, 9}})
    for (std::int64_t total = 0; total <= 40; ++total) {
      const auto counts = counts_of(total, {2, parts});
      const double wanted = double(total) * parts[0] / (parts[0] + parts[1]);
      for (std::int64_t other = 0; other <= total; ++other)
        EXPECT_LE(std::abs(double(counts[0]) - wanted), std::abs(double(other) - wanted) + 1e-9);
    }
}

TEST(Shares, AreRefusedUnlessThereIsANumberAboveZeroForEachRank) {
  EXPECT_THAT(message_of([] {
                (void)Shares(3, {1, 2});
              }),
              HasSubstr("a share for each of 3 ranks, there are 2"));
  EXPECT_THAT(message_of([] { (void)Shares(2, {1, 0}); }), HasSubstr("above 0, one is 0"));
  EXPECT_THAT(message_of([] {
                check_shares({.tp = 2, .shares = {.tp = {1, 1001}}});
              }),
              HasSubstr("the shares of tp should lie between 1 and 1000, one is 1001"));
  EXPECT_THAT(message_of([] {
                check_shares({.ring = 2, .tp = 2, .shares = {.ring = {1, 2, 3}}});
              }),
              HasSubstr("ring has 3 shares, but its degree is 2"));
}

TEST(Shares, OfTheContextAreProductsOfRingAndUlysses) {
  const Degrees grid{.ring = 2, .ulysses = 2, .shares = {.ring = {3, 1}, .ulysses = {2, 1}}};
  EXPECT_EQ(to_string(grid.of_context()), "6:3:2:1");
  const Degrees far{.ring = 2, .ulysses = 2, .shares = {.ring = {1000, 1}, .ulysses = {1000, 1}}};
  EXPECT_EQ(to_string(far.of_context()), "1000000:1000:1000:1");
  EXPECT_TRUE((Degrees{.ring = 2, .ulysses = 3}.of_context().are_alike()));
}

TEST(Shares, AreOfTheGroupsOfAMesh) {
  run_ranks({.size = 4}, [](const Group& world) {
    const auto mesh =
        make_mesh(world, {.ring = 2, .tp = 2, .shares = {.ring = {3, 1}, .tp = {1, 4}}});
    EXPECT_EQ(to_string(mesh.ring.shares()), "3:1");
    EXPECT_EQ(to_string(mesh.context.shares()), "3:1");
    EXPECT_EQ(to_string(mesh.tp.shares()), "1:4");
    EXPECT_TRUE(mesh.dp.shares().are_alike());
    EXPECT_EQ(share_of(10, mesh.tp), share_of(10, mesh.tp.rank(), {2, {1, 4}}));
  });
}

// Attention asks for them in every block.
TEST(Shares, OfAGroupAreNotCopied) {
  run_ranks({.size = 2}, [](const Group& world) {
    EXPECT_EQ(&world.shares(), &world.shares());
    EXPECT_EQ(world.shares(), Shares(2));
    const auto group = world.with_shares({2, {3, 1}});
    EXPECT_EQ(&group.shares(), &group.shares());
    EXPECT_EQ(world.shares(), Shares(2)) << "the group it was made of keeps its own";
  });
  const Group alone;
  EXPECT_EQ(alone.shares(), Shares(1));
}

TEST(Shares, OfAxesAreWrittenAsTheyAreRead) {
  EXPECT_EQ(to_string(AxisShares{.ring = {1, 1}, .tp = {3, 2}}), "ring=1:1,tp=3:2");
  EXPECT_EQ(to_string(AxisShares{}), "");
  const Degrees grid{.dp = 2, .cfg = 2, .tp = 3, .shares = {.dp = {1, 2}, .tp = {1, 2, 3}}};
  std::string said;
  for (const auto& axis : kAxes)
    said += std::string(axis.name) + " " + in_words(axis.of(grid)) + ";";
  EXPECT_EQ(said, "dp 2 (1:2);cfg 2;pp 1;ring 1;ulysses 1;tp 3 (1:2:3);");
}

TEST(Shares, AreNamedWhereRanksDoNotTakeAlike) {
  EXPECT_EQ(in_words(2), "2");
  EXPECT_EQ(in_words({2, {3, 2}}), "2 (3:2)");
  EXPECT_EQ(Shares(3, {1, 4, 4}).largest_rank(), 1);
  EXPECT_EQ(least_share(7, 3), 2);
}

}  // namespace braid::shares_test
