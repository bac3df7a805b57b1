// Processes that are killed, hang or run out of memory, and how the others react.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <sys/resource.h>

#include <fstream>
#include <iostream>

#include "comm/process/early_failure.h"
#include "comm/worlds.h"
#include "own_ranks.h"

namespace braid::lost_ranks_test {

using testing::AnyOf;
using testing::HasSubstr;
using testing::Not;
using namespace std::chrono_literals;

// The body of each rank. Prints what it throws, as "PeerFailed: ...", and how runs ended.
class RankBody : public testing::Test {
 protected:
  void SetUp() override {
    if (!read_launch()) GTEST_SKIP() << "run by LostRanks, once for each rank";
  }
  static std::unique_ptr<World> world_with(std::chrono::milliseconds deadline) {
    const auto launch = read_launch();
    return make_world({.size = launch->size, .deadline = deadline}, launch);
  }
  static void say(const std::string& line) { std::cout << line << std::endl; }
  static void run(World& world, const std::function<void(const Group&)>& body) {
    try {
      world.run(body);
      say("went well");
    } catch (const PeerFailed& e) {
      say(text_of("PeerFailed: ", e.what()));
    } catch (const Error& e) {
      say(text_of("Error: ", e.what()));
    } catch (const std::exception& e) {
      say(text_of("exception: ", std::string(e.what()).substr(0, 200)));
    }
  }
};

TEST_F(RankBody, MeetsForEver) {
  const auto world = world_with(10s);
  run(*world, [](const Group& g) {
    say("begun");
    while (true) g.barrier();
  });
  run(*world, [](const Group&) { say("a run in a lost world"); });
}

TEST_F(RankBody, AwaitsTheLast) {
  const auto world = world_with(10s);
  run(*world, [](const Group& g) {
    say("begun");
    if (g.rank() + 1 < g.size()) return g.await();
    while (true) std::this_thread::sleep_for(1s);
  });
}

// Rank 0 computes, the last one hangs, the others wait without a deadline.
TEST_F(RankBody, ComputesWhileTheLastHangs) {
  const auto world = world_with(1s);
  run(*world, [](const Group& g) {
    g.barrier();
    say("begun");
    if (g.rank() > 0) return g.await();
    compute_until_failure(g);
  });
}

TEST_F(RankBody, HangsForShort) {
  const auto world = world_with(2s);
  run(*world, [](const Group& g) {
    g.barrier();
    if (g.rank() == 1) ::raise(SIGSTOP);
    g.barrier();
  });
}

TEST_F(RankBody, EndsInTheMidst) {
  const auto world = world_with(10s);
  run(*world, [](const Group& g) {
    g.barrier();
    if (g.rank() == 1) std::_Exit(0);
    g.await();
  });
}

TEST_F(RankBody, LeavesBeforeTheOthers) {
  auto world = world_with(2s);
  run(*world, [](const Group& g) { g.barrier(); });
  if (world->has_first_rank()) world.reset();
  if (world) run(*world, [](const Group&) {});
}

// The last rank knows nothing of what the others want of a world.
TEST_F(RankBody, FailsBeforeItMeetsTheOthers) {
  const auto launch = read_launch().value();
  if (launch.rank + 1 == launch.size) {
    const auto failure = std::make_exception_ptr(Error("out of paint"));
    return say(is_told_to_ranks(launch, failure, 10s) ? "told" : "not told");
  }
  say(failure_of([&] {
    (void)make_world({.size = launch.size, .collectives = Collectives::kNative}, launch);
  }));
}

// The memory that counts against RLIMIT_DATA.
std::int64_t data_bytes() {
  std::ifstream status("/proc/self/status");
  for (std::string line; std::getline(status, line);)
    if (line.starts_with("VmData:")) return 1024 * std::stoll(line.substr(7));
  throw Error("/proc/self/status has no VmData");
}

// One rank runs out of memory ten times; the others carry on with it.
TEST_F(RankBody, RunsOutOfMemory) {
  const auto world = world_with(10s);
  const bool is_poor = read_launch()->rank == 1;
  constexpr std::int64_t kWish = 1 << 28;
  if (is_poor) {
    const auto room = rlim_t(data_bytes() + kWish / 4);
    const rlimit limit{.rlim_cur = room, .rlim_max = RLIM_INFINITY};
    ASSERT_EQ(::setrlimit(RLIMIT_DATA, &limit), 0);
  }
  for (int i = 0; i < 10; ++i) {
    run(*world, [&](const Group& g) {
      const auto incoming = g.ring_shift(at::full({1 << 16}, i));
      if (is_poor) (void)at::empty({kWish}, at::kByte);
      (void)incoming->wait();
      g.barrier();
    });
    run(*world, [&](const Group& g) {
      const auto sum = g.all_reduce(at::full({1 << 16}, g.rank() + i));
      EXPECT_EQ(sum[7].item<std::int64_t>(), 3 + 3 * i);
    });
  }
}

int count_of(const std::string& what, const std::string& text) {
  int count = 0;
  for (auto at = text.find(what); at != text.npos; at = text.find(what, at + 1)) ++count;
  return count;
}

TEST(LostRanks, AreNamedWhenTheyWereKilled) {
  for (const int victim : {1, 0}) {
    OwnRanks ranks(3, "RankBody.MeetsForEver");
    for (int r = 0; r < 3; ++r) ASSERT_TRUE(ranks.wait_for(r, "begun"));
    ranks.send(victim, SIGKILL);
    const auto sentence = text_of("rank ", victim, " failed: its process has ended");
    for (int r = 0; r < 3; ++r) {
      const auto printed = ranks.finish(r);
      if (r == victim) continue;
      EXPECT_EQ(count_of(sentence, printed), 2) << printed;  // for the run, and for the next one
      EXPECT_THAT(printed, Not(HasSubstr("a run in a lost world")));
      // one rank speaks for all: the first, unless it is gone
      const bool speaks = victim == 0 && r == 1;
      EXPECT_THAT(printed, HasSubstr((speaks ? "\nError: " : "\nPeerFailed: ") + sentence));
    }
  }
}

TEST(SlowLostRanks, EndAWaitWithoutADeadline) {
  OwnRanks ranks(3, "RankBody.AwaitsTheLast");
  for (int r = 0; r < 3; ++r) ASSERT_TRUE(ranks.wait_for(r, "begun"));
  ranks.send(2, SIGKILL);
  for (const int r : {0, 1})
    EXPECT_THAT(ranks.finish(r), HasSubstr("rank 2 failed: its process has ended"));
}

TEST(LostRanks, ThatHangAreNoticedWhileAnotherComputes) {
  OwnRanks ranks(3, "RankBody.ComputesWhileTheLastHangs");
  for (int r = 0; r < 3; ++r) ASSERT_TRUE(ranks.wait_for(r, "begun"));
  ranks.send(2, SIGSTOP);
  for (const int r : {0, 1})
    EXPECT_THAT(ranks.finish(r), HasSubstr("rank 2 failed: it has not answered for 1 s"));
}

TEST(SlowLostRanks, AreNotThoseThatHangForShort) {
  OwnRanks ranks(2, "RankBody.HangsForShort");
  ranks.wait_for_stop(1);
  std::this_thread::sleep_for(700ms);  // more than a sign of life is missing, after half a second
  ranks.send(1, SIGCONT);
  for (int r = 0; r < 2; ++r) EXPECT_THAT(ranks.finish(r), HasSubstr("went well"));
}

TEST(SlowLostRanks, AreThoseThatExitInARun) {
  OwnRanks ranks(3, "RankBody.EndsInTheMidst");
  for (const int r : {0, 2})
    EXPECT_THAT(ranks.finish(r), HasSubstr("rank 1 failed: its process has ended"));
}

TEST(SlowLostRanks, AreThoseThatLeaveBeforeTheOthers) {
  OwnRanks ranks(3, "RankBody.LeavesBeforeTheOthers");
  for (const int r : {1, 2}) {
    const auto printed = ranks.finish(r);
    EXPECT_THAT(printed, HasSubstr("went well"));
    EXPECT_THAT(printed, AnyOf(HasSubstr("rank 0 failed: it has left the others"),
                               HasSubstr("rank 0 failed: its process has ended")));
  }
}

TEST(SlowLostRanks, TellWhyTheyNeverCame) {
  OwnRanks ranks(3, "RankBody.FailsBeforeItMeetsTheOthers");
  for (const int r : {0, 1})
    EXPECT_THAT(ranks.finish(r), HasSubstr("rank 2 failed: out of paint\n"));
  EXPECT_THAT(ranks.finish(2), HasSubstr("\ntold\n"));
}

TEST(SlowLostRanks, AreNotThoseWhoseMemoryRunsOut) {
  OwnRanks ranks(3, "RankBody.RunsOutOfMemory");
  for (int r = 0; r < 3; ++r) {
    const auto printed = ranks.finish(r);
    EXPECT_EQ(count_of("PeerFailed: rank 1 failed: ", printed), 10) << printed;
    EXPECT_EQ(count_of("can't allocate memory", printed), 10) << printed;
    EXPECT_EQ(count_of("went well", printed), 10) << printed;
    EXPECT_EQ(count_of("Failure", printed), 0) << printed;
  }
}

}  // namespace braid::lost_ranks_test
