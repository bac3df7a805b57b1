// Runs that are stopped, and worlds that are lost.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <pthread.h>

#include "comm/sound_groups.h"

namespace braid::stops_test {

using testing::HasSubstr;
using namespace std::chrono_literals;

class Stops : public SoundGroups {};
INSTANTIATE_TEST_SUITE_P(Transports, Stops, testing::ValuesIn(transports()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Stops, AreHeardOfInEveryCollectiveByAllRanks) {
  for (const auto& [name, call] : kCollectives)
    with_groups([&, call = call](World& world, const Groups& groups) {
      std::stop_source stop;
      const auto body = [&](const Group& g) {
        for (int i = 0; i < 1'000'000; ++i) {
          if (i == 10 && g.rank() == 0) stop.request_stop();
          call(g);
        }
        ADD_FAILURE() << name << " is deaf to stops";
      };
      EXPECT_THROW(world.run(body, world.has_first_rank() ? stop.get_token() : std::stop_token()),
                   Cancelled);
      groups.expect_all_sound(world);
    });
}

TEST_P(Stops, OfOneRankReachThoseThatPoll) {
  with_groups([](World& world, const Groups& groups) {
    std::stop_source stop;
    stop.request_stop();
    const auto body = [](const Group& g) {
      while (true) g.poll();
    };
    EXPECT_THROW(world.run(body, world.has_first_rank() ? stop.get_token() : std::stop_token()),
                 Cancelled);
    groups.expect_all_sound(world);
  });
}

TEST_P(Stops, ThatAllRanksThrowAtTheSamePlaceAreOne) {
  with_groups([](World& world, const Groups& groups) {
    EXPECT_THROW(world.run([](const Group& g) {
      g.barrier();
      throw Cancelled("enough");
    }),
                 Cancelled);
    groups.expect_all_sound(world);
  });
}

TEST(OneRank, CanBeStoppedAndGoesOn) {
  ThreadWorld world({});
  std::stop_source stop;
  stop.request_stop();
  EXPECT_THROW(world.run([](const Group& g) { g.poll(); }, stop.get_token()), Cancelled);
  EXPECT_THROW(world.run([](const Group&) { throw Error("out of paint"); }), Error);
  world.run([](const Group& g) { g.poll(); });
  Group().poll();
}

class Losses : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Transports, Losses, testing::Values(Over::kThreads, Over::kSockets),
                         [](const auto& info) { return name_of(info.param); });

// A missing rank may still come at any time: nothing can be agreed on with it.
TEST_P(Losses, EndTheWorld) {
  with_worlds_over(GetParam(), {.size = 2, .deadline = 200ms}, [](World& world) {
    const auto body = [](const Group& g) {
      if (g.rank() == 1) (void)failure_of([&] { compute_until_failure(g); });
      g.barrier();
    };
    EXPECT_EQ(world.loss(), std::nullopt);
    // A leaving rank may be gone before its message arrives.
    const auto loss = world.has_first_rank()
                          ? testing::Matcher<std::string>(HasSubstr("waited 0.2 s for rank 1"))
                          : testing::AnyOf(HasSubstr("waited 0.2 s for rank 1"),
                                           HasSubstr("rank 0 failed: its process has ended"));
    EXPECT_THAT(failure_of([&] { world.run(body); }), loss);
    EXPECT_THAT(failure_of([&] { world.run([](const Group&) { FAIL(); }); }), loss);
    EXPECT_THAT(world.loss().value_or(""), loss);
  });
}

TEST_P(Losses, AreToldOfAfterARunThatEndedWithAnotherFailure) {
  with_worlds_over(GetParam(), {.size = 2}, [](World& world) {
    const auto body = [](const Group& g) {
      if (g.rank() == 1) throw Error("out of paint");
      (void)failure_of([&] { g.barrier(); });
      throw WorldLost("no link");
    };
    EXPECT_NE(failure_of([&] { world.run(body); }), "");
    if (world.has_first_rank()) {
      EXPECT_EQ(world.loss(), "no link");
    } else {
      EXPECT_THAT(world.loss().value_or(""), HasSubstr("rank 0 failed: "));
    }
  });
}

TEST_P(Losses, AreNotOtherFailures) {
  with_worlds_over(GetParam(), {.size = 2}, [](World& world) {
    EXPECT_NE(failure_of([&] { world.run([](const Group&) { throw Error("out of paint"); }); }),
              "");
    EXPECT_EQ(world.loss(), std::nullopt);
  });
}

// The first rank reports what all ranks find (a broken link), even if it finds it last: the other
// one waits for that, but not for long.
TEST(LossOfAll, IsToldInTheFirstRanksOwnWords) {
  with_worlds_over(Over::kSockets, {.size = 2}, [](World& world) {
    const auto failure = failure_of([&] {
      world.run([](const Group& g) {
        if (g.rank() == 0) std::this_thread::sleep_for(100ms);
        throw WorldLost(text_of("no link on ", g.rank()));
      });
    });
    if (world.has_first_rank()) {
      EXPECT_EQ(failure, "no link on 0");
    }
  });
}

TEST(Threads, ThatCannotBeStartedEndTheRun) {
  ThreadWorld world({.size = 8, .deadline = 2s});
  pthread_attr_t usual, huge;
  ASSERT_EQ(::pthread_getattr_default_np(&usual), 0);
  ASSERT_EQ(::pthread_attr_init(&huge), 0);
  ASSERT_EQ(::pthread_attr_setstacksize(&huge, std::size_t(1) << 45), 0);  // two fit at most
  ASSERT_EQ(::pthread_setattr_default_np(&huge), 0);
  const auto began = std::chrono::steady_clock::now();
  EXPECT_THROW(world.run([](const Group& g) { g.await(); }), std::system_error);
  EXPECT_LT(std::chrono::steady_clock::now() - began, 1s);
  ASSERT_EQ(::pthread_setattr_default_np(&usual), 0);
  world.run([](const Group& g) { expect_sound(g); });
}

}  // namespace braid::stops_test
