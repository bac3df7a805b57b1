// A failure between ranks soon ends all of them, with the first cause.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <thread>

#include "comm/board.h"
#include "comm/worlds.h"

namespace braid::failures_test {

using testing::AllOf;
using testing::HasSubstr;
using namespace std::chrono_literals;

// What run_ranks throws, and what each rank saw.
struct Outcome {
  std::string cause;
  std::vector<std::string> seen;
};

Outcome outcome_over(Over over, int size, const std::function<void(const Group&)>& body,
                     std::chrono::milliseconds deadline) {
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

class Failures : public testing::TestWithParam<Over> {};
INSTANTIATE_TEST_SUITE_P(Transports, Failures, testing::Values(Over::kThreads, Over::kSockets),
                         [](const auto& info) { return name_of(info.param); });

TEST_P(Failures, OfOneRankEndTheOthersWithItsError) {
  const auto begin = std::chrono::steady_clock::now();
  const auto outcome = outcome_over(
      GetParam(), 3,
      [](const Group& world) {
        world.barrier();  // all have started
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
        world.barrier();
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
        compute_until_failure(world);
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
        compute_until_failure(world);
      },
      200ms);
  EXPECT_THAT(outcome.cause, HasSubstr("waited 0.2 s for rank 1"));
}

// Ranks that did not come to a meeting are another matter.
TEST(Boards, NameTheSenderAloneOfATensorThatDoesNotCome) {
  Board board(3, std::make_shared<Fate>(50ms));
  const auto failure = [&] {
    try {
      (void)board.receive(1);
    } catch (const WorldLost& loss) {
      return std::string(loss.what());
    }
    return std::string();
  };
  EXPECT_EQ(failure(), "waited 0.05 s for the tensor of the rank before rank 1");
}

TEST(Notes, SurviveTheirBytes) {
  const Note note{.op = Op::kAllGather,
                  .dtype = at::kBFloat16,
                  .shapes = {{3, 0, 1ll << 40}, {}, {7}},
                  .detail = 2,
                  .number = 77,
                  .site = "a.cc:7"};
  EXPECT_EQ(decode(encode(note, 504)), note);
  EXPECT_THROW(decode("short"), Error);
}

TEST(Notes, CutTheSiteToTheirRoom) {
  Note note{.shapes = {{3, 4}}, .site = std::string(600, 'a')};
  const auto bytes = encode(note, 504);
  EXPECT_EQ(bytes.size(), 504u);
  const auto read = decode(bytes);
  EXPECT_EQ(read.shapes, note.shapes);
  EXPECT_TRUE(note.site.starts_with(read.site));
  note.shapes = {std::vector<std::int64_t>(64, 1)};
  EXPECT_EQ(failure_of([&] { (void)encode(note, 504); }),
            "the shapes of a collective's tensors take 560 bytes, and ranks compare at most 504");
}

}  // namespace braid::failures_test
