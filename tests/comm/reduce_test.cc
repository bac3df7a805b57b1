// Sums and shares against plain numbers.
#include "comm/reduce.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include "comm/group.h"

namespace braid::reduce_test {

Tensor one(double number, at::ScalarType dtype) { return at::full({1}, number, dtype); }

// 256 + 1 + 1 rounds to 256 twice in bfloat16, and once to 258.
TEST(SumInOrder, RoundsOnce) {
  for (const auto& [dtype, large] : {std::pair(at::kBFloat16, 256.), std::pair(at::kHalf, 2048.)}) {
    const std::vector parts = {one(large, dtype), one(1, dtype), one(1, dtype)};
    const auto sum = sum_in_order(parts, 1);
    EXPECT_EQ(sum.scalar_type(), dtype);
    EXPECT_EQ(sum.item<double>(), large + 2);
  }
}

// (1e8 + 1) - 1e8 is 0 in float32, (1e8 - 1e8) + 1 is 1.
TEST(SumInOrder, AddsFromTheFirstToTheLast) {
  const auto sum_of = [](std::vector<double> numbers) {
    std::vector<Tensor> parts;
    for (const double number : numbers) parts.push_back(one(number, at::kFloat));
    return sum_in_order(parts, 0).item<double>();
  };
  EXPECT_EQ(sum_of({1e8, 1, -1e8}), 0);
  EXPECT_EQ(sum_of({1e8, -1e8, 1}), 1);
  EXPECT_EQ(sum_of({1, 1e8, -1e8}), 0);
}

// Neither fits float32.
TEST(SumInOrder, KeepsTheDigitsOfWideTypes) {
  const std::int64_t large = (1ll << 53) - 2;
  const std::vector integers = {at::full({2}, large, at::kLong), at::ones({2}, at::kLong)};
  EXPECT_EQ(sum_in_order(integers, 0)[1].item<std::int64_t>(), large + 1);
  const std::vector doubles = {one(1, at::kDouble), one(1e-12, at::kDouble)};
  EXPECT_EQ(sum_in_order(doubles, 0).item<double>(), 1 + 1e-12);
  const std::vector bytes = {one(200, at::kByte), one(100, at::kByte)};
  EXPECT_EQ(sum_in_order(bytes, 0).item<int>(), 44) << "as unsigned bytes wrap";
}

TEST(SumInOrder, OfTruthsIsTheirOr) {
  const auto truths = [](std::vector<int> numbers) { return at::tensor(numbers).to(at::kBool); };
  const std::vector parts = {truths({0, 1, 0, 1}), truths({0, 0, 1, 1})};
  EXPECT_TRUE(at::equal(sum_in_order(parts, 1), truths({0, 1, 1, 1})));
}

TEST(SumInOrder, LeavesItsPartsAlone) {
  const std::vector parts = {one(1, at::kFloat), one(2, at::kFloat)};
  EXPECT_EQ(sum_in_order(parts, 0).item<float>(), 3);
  EXPECT_EQ(parts[0].item<float>(), 1);
  EXPECT_EQ(parts[1].item<float>(), 2);
}

TEST(Shares, CoverEverythingOnceInOrder) {
  for (const int size : {1, 2, 3, 7})
    for (const std::int64_t total : {0, 1, 2, 6, 7, 8, 100}) {
      std::int64_t next = 0, least = total, most = 0;
      for (int r = 0; r < size; ++r) {
        const auto share = share_of(total, r, size);
        EXPECT_EQ(share.begin, next);
        next += share.count;
        least = std::min(least, share.count);
        most = std::max(most, share.count);
      }
      EXPECT_EQ(next, total);
      EXPECT_LE(most - least, 1) << total << " over " << size;
    }
}

// Together the runs of all ranks are every element of every tensor, once; those of large tensors
// begin at multiples of 16.
TEST(RunsOfRank, CoverAllTensorsOnce) {
  for (const int size : {1, 2, 3, 5, 8})
    for (const auto& numels : {std::vector<std::int64_t>{7}, {0, 3, 0}, {96, 160}, {1000, 24, 1}}) {
      std::vector<Tensor> xs, seen;
      for (const auto numel : numels) {
        xs.push_back(at::arange(numel));
        seen.push_back(at::zeros({numel}, at::kLong));
      }
      std::int64_t most = 0;
      for (int rank = 0; rank < size; ++rank) {
        std::int64_t mine = 0;
        for (const auto& [tensor, elements] : runs_of_rank(xs, rank, size)) {
          EXPECT_GT(elements.count, 0);
          elements_of(seen[tensor], elements).add_(1);
          mine += elements.count;
          EXPECT_EQ(numels.front() == 96 ? elements.begin % 16 : 0, 0);
        }
        most = std::max(most, mine);
      }
      std::int64_t total = 0;
      for (const auto& x : seen) {
        EXPECT_TRUE(x.eq(1).all().item<bool>()) << size;
        total += x.numel();
      }
      EXPECT_LE(most, (total + size - 1) / size + 16);
    }
}

// Counted by hand: 10 elements of two bytes over 3 ranks are shares of 4: 16 bytes received, 20 for
// the result. 1000 are 63 units of 16, of which a rank has 21: 1344 bytes and 2000.
TEST(AllReduceBytes, AreThoseOfItsBuffers) {
  EXPECT_EQ(all_reduce_bytes(10, 2, 3), 36);
  EXPECT_EQ(all_reduce_bytes(1000, 2, 3), 3344);
}

}  // namespace braid::reduce_test
