// Work divided among ranks comes back in order, whatever its shapes.
#include "parallel/map_shared.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <mutex>

#include "comm/stepped_clock.h"
#include "comm/thread.h"

namespace braid::map_shared_test {

TEST(MapShared, GivesTheFirstRankAllResultsInOrder) {
  for (const int num_ranks : {1, 2, 3, 5})
    for (const int num_items : {0, 1, 2, 7}) {
      std::vector<Tensor> items;
      for (int i = 0; i < num_items; ++i) items.push_back(at::full({1, i % 3 + 1}, i, at::kFloat));
      std::mutex mutex;
      int calls = 0;
      run_ranks({.size = num_ranks}, [&](const Group& ranks) {
        const auto got = map_shared(ranks, items, [&](const Tensor& x) {
          const std::scoped_lock lock(mutex);
          ++calls;
          return x.repeat({2, 2}).t() + 1;  // neither dense nor of the item's shape
        });
        ASSERT_EQ(got.size(), ranks.rank() == 0 ? items.size() : 0u);
        for (std::size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(at::equal(got[i], items[i].repeat({2, 2}).t() + 1)) << i;
      });
      EXPECT_EQ(calls, num_items) << num_ranks << " ranks";
    }
}

// One rank decodes a large tile while the others are idle.
TEST(MapShared, AnItemMayTakeLongerThanTheDeadline) {
  SteppedClock clock;
  clock.run_ranks(3, [&](const Group& ranks) {
    const auto got = map_shared(ranks, {at::ones({1})}, [&](const Tensor& x) {
      clock.outlast_deadline(ranks);
      return x + 1;
    });
    EXPECT_EQ(got.size(), ranks.rank() == 0 ? 1u : 0u);
  });
}

TEST(MapShared, AFailureOfOneRankEndsAll) {
  const std::vector<Tensor> items(3, at::zeros({1}));
  EXPECT_THROW(run_ranks({.size = 3},
                         [&](const Group& ranks) {
                           (void)map_shared(ranks, items, [&](const Tensor& x) {
                             if (ranks.rank() == 2) throw std::runtime_error("out of paint");
                             return x;
                           });
                         }),
               std::runtime_error);
}

}  // namespace braid::map_shared_test
