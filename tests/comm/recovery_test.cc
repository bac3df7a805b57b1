// A failed run ends on all ranks, and the next one finds the world as new.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <malloc.h>

#include <map>

#include "comm/sound_groups.h"

namespace braid::recovery_test {

using testing::AnyOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

class Recovery : public SoundGroups {};
INSTANTIATE_TEST_SUITE_P(Transports, Recovery, testing::ValuesIn(transports()),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Recovery, FromAFailureBeforeAnyCollective) {
  for (const auto& [name, call] : kCollectives)
    with_groups([&, call = call](World& world, const Groups& groups) {
      for (int failing = 0; failing < kRanks; ++failing) {
        const auto failure = failure_of([&] {
          world.run([&](const Group& g) {
            call(g);
            if (g.rank() == failing) throw Error("out of paint");
            call(g);
            ADD_FAILURE() << name << " went on without rank " << failing;
          });
        });
        EXPECT_THAT(failure, testing::EndsWith("out of paint"));
        groups.expect_all_sound(world);
      }
    });
}

TEST_P(Recovery, FromAFailureBeforeAnyCollectiveOfASubgroup) {
  for (const auto& [name, call] : kCollectives)
    with_groups([&, call = call](World& world, const Groups& groups) {
      for (const int failing : {0, 2, 1}) {  // the last is not a member
        const auto failure = failure_of([&] {
          world.run([&](const Group& g) {
            call(groups.pair_of(g));
            if (g.rank() == failing) throw Error("out of paint");
            if (g.rank() != 1 && failing != 1) call(groups.pair_of(g));
          });
        });
        EXPECT_THAT(failure, testing::EndsWith("out of paint")) << name;
        groups.expect_all_sound(world);
      }
    });
}

TEST_P(Recovery, DropsTensorsThatWereUnderWay) {
  with_groups([](World& world, const Groups& groups) {
    for (int failing = 0; failing < kRanks; ++failing) {
      EXPECT_NE(failure_of([&] {
                  world.run([&](const Group& g) {
                    const auto large = at::full({1 << 20}, 7.f);
                    std::vector<std::unique_ptr<Incoming>> incoming;
                    for (int i = 0; i < 3; ++i) incoming.push_back(g.ring_shift(large));
                    incoming.push_back(groups.pair_of(g).ring_shift(large));
                    if (g.rank() == failing) throw Error("out of paint");
                    (void)incoming.front()->wait();
                    g.barrier();
                  });
                }),
                "");
      groups.expect_all_sound(world);
    }
  });
}

TEST_P(Recovery, LeavesNothingBehind) {
  const auto in_use = [] {
    const auto heap = ::mallinfo2();
    return double(heap.uordblks + heap.hblkhd);
  };
  with_groups([&](World& world, const Groups& groups) {
    double before = 0;
    for (int time = 0; time < 30; ++time) {
      EXPECT_NE(failure_of([&] {
                  world.run([&](const Group& g) {
                    const auto large = at::full({1 << 16}, 7.f);
                    const auto pair = g.subgroup(std::vector{0, 1});
                    const auto incoming = g.ring_shift(large);
                    const auto of_pair = pair.ring_shift(large);
                    if (g.rank() == time % kRanks) throw Error("out of paint");
                    (void)g.all_gather(large, 0);
                  });
                }),
                "");
      groups.expect_all_sound(world);
      if (time == 10) before = in_use();
    }
    EXPECT_LT(in_use() - before, 1e6);  // a leaked tensor would be 0.25 MB each time
  });
}

// When the run ended, ranks had created different groups.
TEST_P(Recovery, ForgetsGroupsThatNotAllRanksCameTo) {
  with_groups([](World& world, const Groups& groups) {
    for (int failing = 0; failing < kRanks; ++failing) {
      EXPECT_NE(failure_of([&] {
                  world.run([&](const Group& g) {
                    for (int i = 0; i <= g.rank(); ++i) (void)g.subgroup(std::vector{0, 1, 2});
                    if (g.rank() == failing) throw Error("out of paint");
                    g.barrier();
                  });
                }),
                "");
      world.run([&](const Group& g) {
        const auto reversed = g.subgroup(std::vector{2, 1, 0});
        const auto ends = g.subgroup(std::vector{2, 0});
        expect_sound(reversed);
        expect_sound(ends);
        expect_sound(groups.pair_of(g));
      });
    }
  });
}

TEST_P(Recovery, FromExceptionsOfEveryKind) {
  const std::map<std::string, std::function<void()>> kinds = {
      {"no such prompt", [] { throw InputError("no such prompt"); }},
      {"std::bad_alloc", [] { throw std::bad_alloc(); }},
      {"can't allocate memory", [] { (void)at::empty({1ll << 50}); }},
      {"an exception that is not a std::exception", [] { throw 7; }},
      {std::string(3000, 'x'), [] { throw Error(std::string(3000, 'x')); }},
      {"", [] { throw Error(""); }},
  };
  with_groups([&](World& world, const Groups& groups) {
    for (const auto& [sentence, fail] : kinds)
      for (int failing = 0; failing < kRanks; ++failing) {
        const auto failure = failure_of([&, fail = fail] {
          world.run([&](const Group& g) {
            if (g.rank() == failing) fail();
            g.barrier();
            ADD_FAILURE() << "a barrier without rank " << failing;
          });
        });
        EXPECT_THAT(failure, HasSubstr(sentence.substr(0, 900)));
        groups.expect_all_sound(world);
      }
  });
}

TEST_P(Recovery, ThrowsTheFirstRanksExceptionAsItIs) {
  with_groups([](World& world, const Groups&) {
    const auto body = [](const Group& g) {
      if (g.rank() == 0) throw InputError("no such prompt");
      g.barrier();
    };
    if (world.has_first_rank())
      EXPECT_THROW(world.run(body), InputError);
    else
      EXPECT_THROW(world.run(body), PeerFailed);
  });
}

TEST_P(Recovery, TellsABadInputOfALaterRankAsOne) {
  with_groups([](World& world, const Groups& groups) {
    const auto body = [](const Group& g) {
      if (g.rank() == 2) throw InputError("there is no model");
      g.barrier();
    };
    if (world.has_first_rank())
      EXPECT_THROW(world.run(body), InputError);
    else
      EXPECT_THROW(world.run(body), PeerFailed);
    groups.expect_all_sound(world);
  });
}

// The others have probably found the fault and failed before the first rank begins.
TEST_P(Recovery, LetsTheFirstRankSayWhatAllFind) {
  with_groups([](World& world, const Groups& groups) {
    if (!world.has_all_ranks() && world.has_first_rank()) std::this_thread::sleep_for(100ms);
    const auto failure = failure_of([&] {
      world.run([](const Group& g) { throw InputError(text_of("no model for ", g.rank())); });
    });
    if (GetParam() != Over::kThreads && world.has_first_rank()) {
      EXPECT_EQ(failure, "no model for 0");
    }
    groups.expect_all_sound(world);
  });
}

// Each rank hears of the failures in its own order.
TEST(Processes, AgreeOnOneCauseOfSeveral) {
  for (int i = 0; i < 20; ++i) {
    std::vector<std::string> seen(kRanks);
    with_worlds_over(Over::kSockets, {.size = kRanks}, [&](World& world) {
      int rank = 0;
      auto failure = failure_of([&] {
        world.run([&](const Group& g) {
          rank = g.rank();
          g.barrier();
          if (g.rank() > 0) throw Error(text_of("no paint ", g.rank()));
        });
      });
      seen[std::size_t(rank)] = std::move(failure);
    });
    EXPECT_THAT(seen[0], AnyOf("rank 1 failed: no paint 1", "rank 2 failed: no paint 2"));
    for (const auto& failure : seen) EXPECT_EQ(failure, seen[0]);
  }
}

// The others are in the run by then, or come to it later.
TEST(Processes, EndARunWithWhatOneOfThemFoundBeforeIt) {
  for (const int culprit : {0, 1, 2})
    with_worlds_over(Over::kSockets, {.size = kRanks}, [&](World& world) {
      int rank = 0;
      world.run([&](const Group& g) { rank = g.rank(); });
      const auto make = [&] {
        if (rank == culprit) throw InputError("there is no paint");
        return rank;
      };
      const auto make_and_run = [&] {
        EXPECT_EQ(made_before_run(world, make), rank);
        world.run([](const Group& g) { g.barrier(); });
      };
      const auto by_rank = culprit > 0 ? text_of("rank ", culprit, ": ") : "";
      if (rank == 0) {
        EXPECT_THROW(
            try { make_and_run(); } catch (const InputError& error) {
              EXPECT_EQ(error.what(), by_rank + "there is no paint");
              throw;
            },
            InputError);
      } else {
        EXPECT_THROW(make_and_run(), PeerRefused);
      }
      world.run([](const Group& g) { expect_sound(g); });
    });
}

TEST(Threads, RunNothingForWhatIsFoundBefore) {
  ThreadWorld world({.size = 2});
  world.on_failed_run([](int) { ADD_FAILURE() << "what ranks recorded would be dropped"; });
  EXPECT_THROW(made_before_run(world, []() -> int { throw InputError("there is no paint"); }),
               InputError);
  EXPECT_EQ(made_before_run(world, [] { return 1; }), 1);
}

// The others have probably returned before the last rank fails.
TEST_P(Recovery, TellsRanksThatHadDoneTheirPart) {
  with_groups([](World& world, const Groups& groups) {
    EXPECT_THAT(failure_of([&] {
                  world.run([](const Group& g) {
                    if (g.rank() != 2) return;
                    std::this_thread::sleep_for(50ms);
                    throw Error("out of paint");
                  });
                }),
                testing::EndsWith("out of paint"));
    groups.expect_all_sound(world);
  });
}

// The others have finished the previous run, started the next one, and failed.
TEST_P(Recovery, ReachesRanksThatHaveNotBegunTheRun) {
  if (GetParam() == Over::kThreads) return;  // they begin together
  with_groups([](World& world, const Groups& groups) {
    int rank = 0;
    world.run([&](const Group& g) { rank = g.rank(); });
    if (rank == 1) std::this_thread::sleep_for(100ms);  // the failure comes far sooner
    bool has_begun = false;
    EXPECT_THAT(failure_of([&] {
                  world.run([&](const Group& g) {
                    has_begun = true;
                    if (g.rank() == 0) throw Error("out of paint");
                    g.barrier();
                  });
                }),
                testing::EndsWith("out of paint"));
    EXPECT_FALSE(has_begun && rank == 1);
    groups.expect_all_sound(world);
  });
}

TEST_P(Recovery, WaitsForRanksThatComputeForLongerThanTheDeadline) {
  with_groups(
      [](World& world, const Groups& groups) {
        EXPECT_THAT(failure_of([&] {
                      world.run([](const Group& g) {
                        g.barrier();
                        if (g.rank() == 1) throw Error("out of paint");
                        if (g.rank() == 2) std::this_thread::sleep_for(500ms);
                      });
                    }),
                    testing::EndsWith("out of paint"));
        groups.expect_all_sound(world);
      },
      300ms);
}

TEST_P(Recovery, PollsBetweenCollectives) {
  with_groups([](World& world, const Groups& groups) {
    EXPECT_THAT(failure_of([&] {
                  world.run([](const Group& g) {
                    if (g.rank() == 1) throw Error("out of paint");
                    while (true) g.poll();
                  });
                }),
                testing::EndsWith("out of paint"));
    groups.expect_all_sound(world);
  });
}

TEST_P(Recovery, GoesOnWhereABodyHasCaughtAFailure) {
  with_groups([](World& world, const Groups& groups) {
    world.run([](const Group& g) {
      EXPECT_THROW((void)g.all_reduce(at::zeros({g.rank() + 1})), Error);
      g.barrier();
    });
    groups.expect_all_sound(world);
  });
}

}  // namespace braid::recovery_test
