// How many threads loops use while other threads of the process set their own numbers.
#include "pipeline/devices/rank_threads.h"

#include <ATen/Parallel.h>
#include <gtest/gtest.h>

#include <thread>

namespace braid::rank_threads_test {

// Two concurrent pipelines occasionally drew other bits: a thread's first loop took the number that
// another thread had set meanwhile.
TEST(RankThreads, KeepTheirNumberWhateverOthersSet) {
  const UseThreads ours(3);
  int before = 0, within = 0, after = 0;
  std::jthread([&] {
    const UseThreads one(1);
    before = at::get_num_threads();
    std::jthread([] { at::set_num_threads(2); }).join();
    at::parallel_for(0, 8, 1, [](std::int64_t, std::int64_t) {});
    after = at::get_num_threads();
    const UseThreads two(2);
    within = at::get_num_threads();
  }).join();
  EXPECT_EQ(before, 1);
  EXPECT_EQ(after, 1);
  EXPECT_EQ(within, 2);
  EXPECT_EQ(at::get_num_threads(), 3);
}

}  // namespace braid::rank_threads_test
