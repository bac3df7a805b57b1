// Pipeline parallelism on a toy denoiser: what arrives where, and that stages work simultaneously.
#include "parallel/pipeline_parallel.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <condition_variable>
#include <mutex>

#include "base/error.h"
#include "comm/stepped_clock.h"
#include "comm/thread.h"

namespace braid::pipeline_parallel_test {

using testing::ElementsAre;
using testing::HasSubstr;

DenoiserInput input_of(int num_pictures, double first) {
  const auto values = at::arange(double(num_pictures), at::kFloat) + first;
  return {.noise = {values.view({-1, 1, 1}).expand({-1, 5, 2}), at::zeros({5, 3})},
          .text = {at::zeros({num_pictures, 4, 2}), at::zeros({4, 3})},
          .pooled_BC = at::zeros({num_pictures, 2}),
          .timestep_B = at::zeros({num_pictures})};
}

// Stage s computes 10 x + s, so only the right order of stages gives the right result. The first
// stage has no state, however many items there are.
PredictPart digits(int stage) {
  return [=](const DenoiserInput& in, const Tensor& state) {
    return (state.defined() ? state : in.noise.x_BLC) * 10 + stage;
  };
}

class Stages : public testing::TestWithParam<int> {};

TEST_P(Stages, EveryPictureGoesThroughAllInOrderAndComesBackToAll) {
  const int num_stages = GetParam();
  for (const int num_pictures : {1, 2, 3, 7}) {
    run_ranks({.size = num_stages}, [&](const Group& world) {
      const auto predict = pipeline_parallel(world, digits(world.rank()));
      const auto a = input_of(num_pictures, 1), b = input_of(num_pictures, 50);
      const auto got = predict({a, b});
      ASSERT_EQ(got.size(), 2u);
      auto want_a = a.noise.x_BLC * 10, want_b = b.noise.x_BLC * 10;
      for (int stage = 1; stage < num_stages; ++stage) {
        want_a = want_a * 10 + stage;
        want_b = want_b * 10 + stage;
      }
      EXPECT_TRUE(at::equal(got[0], want_a)) << num_pictures << " pictures";
      EXPECT_TRUE(at::equal(got[1], want_b)) << num_pictures << " pictures";
    });
  }
}

INSTANTIATE_TEST_SUITE_P(Numbers, Stages, testing::Values(1, 2, 3, 5));

// Each stage stays in its part until all stages are in theirs: this only terminates if the pipe
// works on several pictures at once.
TEST(LayerSplit, StagesWorkAtTheSameTimeOnDifferentPictures) {
  constexpr int kStages = 3;
  std::mutex mutex;
  std::condition_variable changed;
  int inside = 0, most = 0;
  std::vector<bool> was_full(kStages, false);
  run_ranks({.size = kStages}, [&](const Group& world) {
    int item = 0;
    const auto part = [&](const DenoiserInput& in, const Tensor& state) {
      const int tick = world.rank() + item++;
      {
        std::unique_lock lock(mutex);
        most = std::max(most, ++inside);
        changed.notify_all();
        // with three pictures all three stages are busy at tick 2
        if (tick == 2)
          was_full[std::size_t(world.rank())] =
              changed.wait_for(lock, std::chrono::seconds(8), [&] { return most == kStages; });
        --inside;
      }
      return world.rank() == 0 ? in.noise.x_BLC + 0 : state;
    };
    (void)pipeline_parallel(world, part)({input_of(kStages, 0)});
    EXPECT_EQ(item, kStages);
  });
  EXPECT_EQ(most, kStages);
  EXPECT_THAT(was_full, ElementsAre(true, true, true));
}

// The first stage works while the second is idle: no reason to give up.
TEST(LayerSplit, AnItemMayTakeLongerThanTheDeadline) {
  SteppedClock clock;
  clock.run_ranks(2, [&](const Group& world) {
    const auto part = [&](const DenoiserInput& in, const Tensor& state) {
      if (world.rank() == 0) clock.outlast_deadline(world);
      return world.rank() == 0 ? in.noise.x_BLC + 0 : state;
    };
    EXPECT_EQ(pipeline_parallel(world, part)({input_of(1, 7)}).size(), 1u);
  });
}

TEST(LayerSplit, AStageThatFailsEndsAll) {
  const auto run = [] {
    run_ranks({.size = 3}, [](const Group& world) {
      const auto part = [&](const DenoiserInput& in, const Tensor&) -> Tensor {
        if (world.rank() == 1) throw std::runtime_error("out of paint");
        return in.noise.x_BLC;
      };
      (void)pipeline_parallel(world, part)({input_of(3, 0)});
    });
  };
  EXPECT_THROW(run(), std::runtime_error);
}

// The branches of guidance are items too, so even one picture keeps two stages busy.
TEST(LayerSplit, BranchesOfOnePictureAreItems) {
  std::vector<int> calls(2, 0);
  run_ranks({.size = 2}, [&](const Group& world) {
    const auto part = [&](const DenoiserInput& in, const Tensor& state) {
      ++calls[std::size_t(world.rank())];
      return world.rank() == 0 ? in.noise.x_BLC + 0 : state;
    };
    (void)pipeline_parallel(world, part)({input_of(1, 0), input_of(1, 1)});
  });
  EXPECT_THAT(calls, ElementsAre(2, 2));
}

std::vector<std::int64_t> counts(const std::vector<Share>& runs) {
  std::vector<std::int64_t> counts;
  std::int64_t at = 0;
  for (const auto& run : runs) {
    EXPECT_EQ(run.begin, at);
    at += run.count;
    counts.push_back(run.count);
  }
  return counts;
}

TEST(RunsInProportion, FollowTheCapacities) {
  const std::vector<std::int64_t> equal(12, 1);
  EXPECT_THAT(counts(runs_in_proportion(equal, {1, 1})), ElementsAre(6, 6));
  EXPECT_THAT(counts(runs_in_proportion(equal, {2, 1, 1})), ElementsAre(6, 3, 3));
  EXPECT_THAT(counts(runs_in_proportion(equal, {1, 5})), ElementsAre(2, 10));
  EXPECT_THAT(counts(runs_in_proportion({4, 4, 1, 1, 1, 1}, {2, 1})), ElementsAre(2, 4));
}

TEST(RunsInProportion, LeaveNoneEmpty) {
  EXPECT_THAT(counts(runs_in_proportion({1, 1, 1}, {1e9, 1, 1})), ElementsAre(1, 1, 1));
  EXPECT_THAT(counts(runs_in_proportion({1, 1, 1, 1}, {1, 1, 1e9})), ElementsAre(1, 1, 2));
}

// The planner asks for the same runs before there are ranks.
TEST(RunsOfStages, AreByMemoryUnlessAllAreHostsOrSharesAreGiven) {
  const std::vector<std::int64_t> equal(8, 1);
  const StageMemory large{.is_host = false, .free_bytes = 30},
      small{.is_host = false, .free_bytes = 10}, host{.is_host = true, .free_bytes = 10},
      full{.is_host = false, .free_bytes = -5};
  EXPECT_THAT(counts(runs_of_stages(equal, 2, {large, small})), ElementsAre(6, 2));
  EXPECT_THAT(counts(runs_of_stages(equal, 2, {large, host})), ElementsAre(6, 2));
  EXPECT_THAT(counts(runs_of_stages(equal, 2, {host, host})), ElementsAre(4, 4));
  EXPECT_THAT(counts(runs_of_stages(equal, 2, {large, full})), ElementsAre(7, 1));
  EXPECT_THAT(counts(runs_of_stages(equal, {2, {1, 3}}, {large, small})), ElementsAre(2, 6));
}

TEST(JoinedMemory, IsThatOfTheFullestRankAndOfAHostIfThereIsOne) {
  const auto joined =
      joined_memory({.is_host = false, .free_bytes = 30}, {.is_host = true, .free_bytes = 40});
  EXPECT_TRUE(joined.is_host);
  EXPECT_EQ(joined.free_bytes, 30);
}

// Computed by hand: sizes of 1 each, devices with 30 and 10 bytes free.
TEST(BlocksOfRank, AreByFreeMemoryOnDevicesAndEqualOnCpus) {
  for (const bool is_host : {false, true}) {
    std::vector<std::int64_t> blocks(2);
    run_ranks({.size = 2}, [&](const Group& world) {
      const auto mesh = make_mesh(world, {.pp = 2});
      const StageMemory mine{.is_host = is_host, .free_bytes = world.rank() == 0 ? 30 : 10};
      blocks[std::size_t(world.rank())] =
          blocks_of_rank(mesh, std::vector<std::int64_t>(8, 1), [&] { return mine; }).count;
    });
    EXPECT_THAT(blocks, is_host ? ElementsAre(4, 4) : ElementsAre(6, 2));
  }
}

TEST(BlocksOfRank, CountTheFullestRankOfAStage) {
  for (const int fullest : {0, 1}) {
    std::vector<std::int64_t> blocks(4);
    run_ranks({.size = 4}, [&](const Group& world) {
      const auto mesh = make_mesh(world, {.pp = 2, .tp = 2});
      const StageMemory mine{.is_host = false, .free_bytes = world.rank() == fullest ? 10 : 30};
      blocks[std::size_t(world.rank())] =
          blocks_of_rank(mesh, std::vector<std::int64_t>(8, 1), [&] { return mine; }).count;
    });
    EXPECT_THAT(blocks, ElementsAre(2, 2, 6, 6)) << fullest;
  }
}

// A GPU is initialised on its first use.
TEST(BlocksOfRank, WaitForARankThatTakesLongToSayWhatIsFree) {
  SteppedClock clock;
  clock.run_ranks(2, [&](const Group& world) {
    const auto mesh = make_mesh(world, {.pp = 2});
    if (world.rank() == 1) clock.outlast_deadline(world);
    EXPECT_EQ(blocks_of_rank(mesh, {1, 1}, [] { return StageMemory{true, 1}; }).count, 1);
  });
}

TEST(BlocksOfRank, RefuseSharesThatLeaveAStageWithoutABlock) {
  for (const auto& shares : {std::vector{15, 1}, std::vector{1, 100}}) {
    try {
      run_ranks({.size = 2}, [&](const Group& world) {
        const auto mesh = make_mesh(world, {.pp = 2, .shares = {.pp = shares}});
        const std::vector<std::int64_t> blocks(8, 1);
        (void)blocks_of_rank(mesh, blocks, [] { return StageMemory{true, 1}; });
      });
      FAIL();
    } catch (const InputError& e) {
      EXPECT_THAT(e.what(), HasSubstr("leaves a rank without a block, there are 8"));
    }
  }
}

TEST(BlocksOfRank, RefuseMoreStagesThanBlocks) {
  try {
    run_ranks({.size = 3}, [&](const Group& world) {
      const auto mesh = make_mesh(world, {.pp = 3});
      (void)blocks_of_rank(mesh, {1, 1}, [] { return StageMemory{true, 1}; });
    });
    FAIL();
  } catch (const InputError& e) {
    EXPECT_THAT(e.what(),
                HasSubstr("pipeline parallelism 3 leaves a rank without a block, there are 2"));
  }
}

}  // namespace braid::pipeline_parallel_test
