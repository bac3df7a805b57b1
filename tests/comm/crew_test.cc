#include "comm/crew.h"

#include <gtest/gtest.h>

#include <set>

#include "comm/worlds.h"

namespace braid::crew_test {

TEST(Crew, DoesEachPieceOfWorkOnceOnTheSameThreads) {
  Crew crew;
  std::vector<std::thread::id> first(4), ids(4);
  for (int round = 0; round < 50; ++round) {
    std::vector<int> done(4);
    crew.run(4, [&](int i) {
      ++done[std::size_t(i)];
      ids[std::size_t(i)] = std::this_thread::get_id();
    });
    EXPECT_EQ(done, std::vector(4, 1));
    if (round == 0) first = ids;
    EXPECT_EQ(ids, first);
  }
  EXPECT_EQ(ids.front(), std::this_thread::get_id());
  EXPECT_EQ(std::set(ids.begin(), ids.end()).size(), 4u);
}

TEST(Crew, TakesWorkOfAnySize) {
  Crew crew;
  for (const int size : {1, 3, 2, 5, 1, 4}) {
    std::vector<int> done(std::size_t(size), 0);
    crew.run(size, [&](int i) { ++done[std::size_t(i)]; });
    EXPECT_EQ(done, std::vector(std::size_t(size), 1));
  }
}

// cuDNN's plans, and what else a library keeps for a thread, serve later runs.
TEST(ThreadWorld, KeepsWhatAThreadKeepsFromRunToRun) {
  thread_local int seen = 0;
  ThreadWorld world({.size = 3});
  for (int run = 1; run <= 3; ++run) {
    world.run([&](const Group& g) {
      if (g.rank() == 0) return;
      EXPECT_EQ(++seen, run);
    });
    EXPECT_THROW(world.run([&](const Group& g) {
      if (g.rank() == 1) throw Error("out of paint");
      g.barrier();
    }),
                 Error);
  }
}

}  // namespace braid::crew_test
