// Shares of a layer among ranks: the parts of fused layers one by one, whole heads, and refusals.
#include "weights/sharding.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>

#include "message_of.h"
#include "weights/row_parts.h"
#include "weights/survey.h"

namespace braid::sharding_test {

using testing::ElementsAre;
using testing::HasSubstr;

using Widths = std::vector<std::int64_t>;

struct Fused {
  Widths parts;
  std::int64_t unit;
};

// The rank that holds each number, or -1 where several or none do.
std::vector<int> holders(const Fused& fused, std::int64_t total, int size) {
  std::vector<int> holder(std::size_t(total), -1);
  std::vector<int> times(std::size_t(total), 0);
  for (int rank = 0; rank < size; ++rank)
    for (const auto& share :
         shares_of(column_parallel(fused.parts, fused.unit), total, rank, size, "layer"))
      for (auto i = share.begin; i < share.begin + share.count; ++i) {
        holder[std::size_t(i)] = rank;
        ++times[std::size_t(i)];
      }
  for (std::size_t i = 0; i < holder.size(); ++i)
    if (times[i] != 1) holder[i] = -1;
  return holder;
}

// Every part by itself: ranks in order, each with whole units, the first with the most.
TEST(SharesOfParts, CoverEachOnceInTheOrderOfRanks) {
  for (const auto& fused : {Fused{{105}, 0}, Fused{{105, 105, 210}, 0}, Fused{{44, 28}, 4},
                            Fused{{28, 28, 28}, 4}, Fused{{7, 9}, 1}})
    for (const int size : {1, 3, 5, 7}) {
      const auto total = std::accumulate(fused.parts.begin(), fused.parts.end(), std::int64_t(0));
      const auto holder = holders(fused, total, size);
      std::int64_t begin = 0;
      for (const auto part : fused.parts) {
        const std::vector<int> of_part(holder.begin() + begin, holder.begin() + begin + part);
        EXPECT_TRUE(std::is_sorted(of_part.begin(), of_part.end())) << size;
        const auto unit = std::max<std::int64_t>(1, fused.unit);
        const auto least = part / unit / size * unit;
        auto last = part;
        for (int rank = 0; rank < size; ++rank) {
          const auto count = std::count(of_part.begin(), of_part.end(), rank);
          EXPECT_TRUE(count == least || count == least + unit) << count << " of " << part;
          EXPECT_LE(count, last);
          last = count;
        }
        begin += part;
      }
    }
}

// Each copy serves equally many heads of queries.
TEST(SharesOfParts, AreCopiedToNeighboursWhereThereAreFewerThanRanks) {
  constexpr int kQueries = 12;
  const auto begins = [](int size) {
    std::vector<std::int64_t> all;
    for (int rank = 0; rank < size; ++rank) {
      const auto shares =
          shares_of(column_parallel_grouped({}, 8, kQueries), 16, rank, size, "k_proj");
      EXPECT_EQ(shares.size(), 1U);
      EXPECT_EQ(shares[0].count, size == 1 ? 16 : 8) << size;
      all.push_back(shares[0].begin);
    }
    return all;
  };
  EXPECT_THAT(begins(1), testing::ElementsAre(0));
  EXPECT_THAT(begins(2), testing::ElementsAre(0, 8));
  EXPECT_THAT(begins(4), testing::ElementsAre(0, 0, 8, 8));
  EXPECT_THAT(begins(6), testing::ElementsAre(0, 0, 0, 8, 8, 8));
}

TEST(SharesOfParts, AreRefusedWhereARankWouldHaveNoneOrTheyAreNotWhole) {
  const auto refusal = [](const Fused& fused, std::int64_t total, int size) {
    return message_of(
        [&] { shares_of(row_parallel(fused.parts, fused.unit), total, 0, size, "blocks.7.out"); });
  };
  EXPECT_EQ(refusal({{}, 0}, 12, 3), "");
  EXPECT_THAT(refusal({{}, 0}, 12, 5),
              HasSubstr("over 5 ranks cannot share the 12 of blocks.7.out evenly"));
  EXPECT_THAT(refusal({{12, 10}, 0}, 22, 3), HasSubstr("cannot share the 10 of blocks.7.out"));
  EXPECT_THAT(refusal({{12, 10}, 0}, 23, 2), HasSubstr("parts of 22 together, it has 23"));
  EXPECT_EQ(refusal({{}, 4}, 12, 3), "");
  EXPECT_THAT(refusal({{}, 4}, 12, 4),
              HasSubstr("over 4 ranks cannot share the 12 of blocks.7.out: there are 3 pieces that "
                        "cannot be cut, and none for rank 3"));
  EXPECT_THAT(refusal({{}, 5}, 12, 2), HasSubstr("in multiples of 5"));
}

TEST(Shardings, AreOfTheFirstRowThatMatches) {
  const ShardingTable table = {{"blocks.*.qkv", column_parallel()}, {"blocks.*.*", row_parallel()}};
  EXPECT_EQ(find_sharding(table, "blocks.3.qkv")->split, Split::kColumns);
  EXPECT_EQ(find_sharding(table, "blocks.3.out")->split, Split::kRows);
  EXPECT_EQ(find_sharding(table, "blocks.3"), nullptr);
}

// A fused layer stored as several tensors: the last parts have one each, the first the rest.
TEST(RowsOfStoredTensors, AreThoseOfThePartsFromTheLastOn) {
  const ShardingTable table = {{"in", column_parallel({3, 3, 3, 12})}};
  EXPECT_THAT(row_parts("in", 21, 1, table), ElementsAre(21));
  EXPECT_THAT(row_parts("in", 21, 2, table), ElementsAre(9, 12));
  EXPECT_THAT(row_parts("in", 21, 4, table), ElementsAre(3, 3, 3, 12));
  EXPECT_THAT(row_parts("in", 21, 3, table, {1, 2, 1}), ElementsAre(3, 6, 12));
}

// Parts of a row-parallel layer are of its columns: its rows are cut evenly, as those of a layer
// of which nothing is known.
TEST(RowsOfStoredTensors, AreEqualWhereNoPartsOfRowsAreKnown) {
  const ShardingTable table = {{"out", row_parallel({4, 16})}, {"up", column_parallel({5, 5})}};
  EXPECT_THAT(row_parts("out", 20, 2, table), ElementsAre(10, 10));
  EXPECT_THAT(row_parts("other", 12, 3, table), ElementsAre(4, 4, 4));
  EXPECT_THAT(row_parts("up", 12, 3, table), ElementsAre(4, 4, 4));
  EXPECT_THAT(message_of<Error>([&] { row_parts("other", 13, 3, table); }),
              HasSubstr("cannot split the 13 rows of other into 3 tensors"));
}

// One float32 scale per row beside 8-bit codes, of matrices only.
TEST(SurveyedBytes, AreThoseOfTheForm) {
  const auto bytes = [](TensorRequest::Kind kind, Quantize form) {
    return bytes_of({"layer", "weight", {7, 40}, at::kBFloat16, kind, PageUse::kRepeated}, form);
  };
  using Kind = TensorRequest::Kind;
  EXPECT_EQ(bytes(Kind::kMatrix, Quantize::kNone), 7 * 40 * 2);
  EXPECT_EQ(bytes(Kind::kMatrix, Quantize::kInt8), 7 * 40 + 7 * 4);
  EXPECT_EQ(bytes(Kind::kNumbers, Quantize::kInt8), 7 * 40 * 2);
  EXPECT_EQ(bytes(Kind::kTable, Quantize::kInt8), 7 * 40 * 2);
}

}  // namespace braid::sharding_test
