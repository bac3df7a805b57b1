// What goes wrong between ranks ends all of them soon, with the first cause.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/mesh.h"
#include "comm/worlds.h"

namespace braid {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

// What run_ranks throws, and what each rank saw.
struct Outcome {
  std::string cause;
  std::vector<std::string> seen;
};

Outcome outcome_over(Over over, int size, const std::function<void(const Group&)>& body,
                     std::chrono::milliseconds deadline = 2s) {
  Outcome outcome{.cause = "", .seen = std::vector<std::string>(std::size_t(size))};
  try {
    run_over(over, {.size = size, .deadline = deadline}, [&](const Group& world) {
      try {
        body(world);
      } catch (const std::exception& e) {
        outcome.seen[std::size_t(world.rank())] = e.what();
        throw;
      }
    });
  } catch (const std::exception& e) {
    outcome.cause = e.what();
  }
  return outcome;
}

Outcome outcome_of(int size, const std::function<void(const Group&)>& body) {
  return outcome_over(Over::kThreads, size, body);
}

class Failures : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Transports, Failures, testing::Values(Over::kThreads, Over::kSockets),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Failures, AMismatchOfShapesNamesBothRanksAndBothShapes) {
  const auto outcome = outcome_over(GetParam(), 3, [](const Group& world) {
    (void)world.all_reduce(at::zeros({2, world.rank() == 2 ? 4 : 3}));
  });
  for (const auto& seen : outcome.seen)
    EXPECT_THAT(seen, AllOf(HasSubstr("rank 0 calls all_reduce of Float [2, 3]"),
                            HasSubstr("rank 2 calls all_reduce of Float [2, 4]")));
}

TEST(Mismatch, OfDtypesOrOperationsOrRootsIsNamed) {
  const auto zeros = at::zeros({2});
  EXPECT_THAT(outcome_of(2,
                         [&](const Group& w) {
                           (void)w.all_reduce(w.rank() ? zeros.to(at::kBFloat16) : zeros);
                         })
                  .cause,
              AllOf(HasSubstr("Float [2]"), HasSubstr("BFloat16 [2]")));
  EXPECT_THAT(outcome_of(2,
                         [&](const Group& w) {
                           (void)(w.rank() ? w.all_reduce(zeros) : w.all_gather(zeros, 0));
                         })
                  .cause,
              AllOf(HasSubstr("all_reduce"), HasSubstr("all_gather")));
  EXPECT_THAT(outcome_of(2, [&](const Group& w) { (void)w.broadcast(zeros, w.rank()); }).cause,
              AllOf(HasSubstr("from rank 0"), HasSubstr("from rank 1")));
  EXPECT_THAT(outcome_of(2,
                         [&](const Group& w) {
                           (void)w.all_gather(zeros.view({1, 2}), w.rank());
                         })
                  .cause,
              AllOf(HasSubstr("along dim 0"), HasSubstr("along dim 1")));
}

TEST(Mismatch, OfTheCallersPlacesIsShown) {
  EXPECT_THAT(
      outcome_of(2, [](const Group& w) { (void)w.all_reduce(at::zeros({w.rank() + 1})); }).cause,
      HasSubstr("failures_test.cc:"));
}

TEST_P(Failures, OfOneRankEndTheOthersWithItsError) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = outcome_over(
      GetParam(), 3,
      [](const Group& world) {
        if (world.rank() == 1) throw Error("out of paint");
        for (int i = 0; i < 1000; ++i) world.barrier();
      },
      10s);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 2s);
  EXPECT_THAT(outcome.cause, testing::EndsWith("out of paint"));
  EXPECT_EQ(outcome.seen[0], "rank 1 failed: out of paint");
  EXPECT_EQ(outcome.seen[2], "rank 1 failed: out of paint");
}

TEST_P(Failures, OfMemoryEndTheOthersToo) {
  const auto outcome = outcome_over(
      GetParam(), 3,
      [](const Group& world) {
        if (world.rank() == 2) (void)at::empty({1ll << 50});
        for (int i = 0; i < 1000; ++i) world.barrier();
      },
      10s);
  EXPECT_THAT(outcome.cause, HasSubstr("can't allocate memory"));
  for (const int rank : {0, 1})
    EXPECT_THAT(outcome.seen[std::size_t(rank)],
                AllOf(HasSubstr("rank 2 failed"), HasSubstr("can't allocate memory")));
}

TEST_P(Failures, AnAbsentRankIsNamedWhenTheDeadlinePasses) {
  const auto outcome = outcome_over(
      GetParam(), 3,
      [](const Group& world) {
        if (world.rank() != 2) return world.barrier();
        std::this_thread::sleep_for(400ms);
        throw Error("too late");
      },
      200ms);
  EXPECT_THAT(outcome.cause, HasSubstr("waited 0.2 s for rank 2"));
}

TEST_P(Failures, AnAbsentRankIsNoticedWhileATensorIsUnderWay) {
  const auto outcome = outcome_over(
      GetParam(), 2,
      [](const Group& world) {
        const auto incoming = world.ring_shift(at::zeros({2}));
        (void)incoming->wait();
        if (world.rank() == 0) return world.barrier();
        std::this_thread::sleep_for(400ms);
        throw Error("too late");
      },
      200ms);
  EXPECT_THAT(outcome.cause, HasSubstr("waited 0.2 s for rank 1"));
}

TEST(AllToAll, RefusesAWrongNumberOfParts) {
  EXPECT_THAT(outcome_of(2, [](const Group& w) { (void)w.all_to_all({at::zeros({2})}); }).cause,
              HasSubstr("over 2 ranks was given 1 parts"));
}

TEST(Mesh, PutsTensorParallelRanksNextToEachOther) {
  run_ranks({.size = 12}, [](const Group& world) {
    const auto mesh = make_mesh(world, {.ring = 3, .ulysses = 2, .tp = 2});
    const auto members = [&](const Group& group) {
      const auto all = group.all_gather(at::full({1}, world.rank(), at::kLong), 0);
      return std::vector<std::int64_t>(all.data_ptr<std::int64_t>(),
                                       all.data_ptr<std::int64_t>() + all.numel());
    };
    if (world.rank() != 7) {
      members(mesh.tp), members(mesh.ulysses), members(mesh.ring), members(mesh.context);
      return;
    }
    EXPECT_THAT(members(mesh.tp), testing::ElementsAre(6, 7));
    EXPECT_THAT(members(mesh.ulysses), testing::ElementsAre(5, 7));
    EXPECT_THAT(members(mesh.ring), testing::ElementsAre(3, 7, 11));
    EXPECT_THAT(members(mesh.context), testing::ElementsAre(1, 3, 5, 7, 9, 11));
    EXPECT_EQ(mesh.cfg.size(), 1);
    EXPECT_EQ(mesh.context.rank(), 3);
  });
}

TEST(Mesh, RefusesAProductThatIsNotTheWorldWithTheEquation) {
  const auto outcome =
      outcome_of(3, [](const Group& world) { make_mesh(world, {.ulysses = 2, .tp = 2}); });
  EXPECT_THAT(
      outcome.cause,
      HasSubstr("dp 1 x cfg 1 x layers 1 x ring 1 x ulysses 2 x tp 2 = 4, but there are 3 ranks"));
}

TEST(Notes, SurviveTheirBytes) {
  const Note note{.op = Op::kAllGather,
                  .dtype = at::kBFloat16,
                  .shape = {3, 0, 1ll << 40},
                  .detail = 2,
                  .number = 77,
                  .site = "a.cc:7"};
  EXPECT_EQ(decode(encode(note)), note);
  EXPECT_THROW(decode("short"), Error);
}

}  // namespace
}  // namespace braid
