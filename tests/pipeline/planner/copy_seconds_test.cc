// How long the copies of a budget's choice take, from the bytes of FLUX.1-dev's blocks.
#include <gtest/gtest.h>

#include "pipeline/planner/memory_plan.h"
#include "pipeline/planner/planned.h"

namespace braid::copy_seconds_test {

// A copy starts late by what moves half a megabyte.
constexpr double kLate = 500'000;
constexpr double kHidden = 3072, kHead = 128;
// Bytes in bfloat16 of the blocks of a step, and of what modulates them, once per picture.
constexpr double kSingles = 2 * 38 * (12 * kHidden * kHidden + 8 * kHidden + 2 * kHead);
constexpr double kBlocks =
    2 * 19 * 2 * (12 * kHidden * kHidden + 9 * kHidden + 2 * kHead) + kSingles;
constexpr double kOnce =
    2 * (19 * (12 * kHidden * kHidden + 12 * kHidden) + 38 * (3 * kHidden * kHidden + 3 * kHidden));

// Bytes that could be copied in the same time, with only the transformer's blocks in pages.
double copied(const Offload& offload, int pictures = 1, int batch = 1) {
  auto job = flux_dev();
  job.num_pictures = pictures;
  job.batch_size = batch;
  auto& memory = job.memory;
  memory.offload = offload;
  memory.offload.transformer = OffloadMode::kBlock;
  memory.budget = {.device = 100'000'000'000};
  job.stated = {.transformer = true, .text = true, .vae = true, .prefetch = true, .resident = true};
  return plan_memory(job, {.grid = {}, .devices = {"cuda:0"}}).copy_seconds * kHostSpeed;
}

TEST(CopySeconds, AreOfAllBlocksInEachStepAndOfWhatModulatesThemOnce) {
  const double want = 28 * (kBlocks + 57 * kLate) + kOnce + 57 * kLate;
  EXPECT_NEAR(copied({}) / want, 1, 1e-4);
}

// The middle one of three groups in two slots stays.
TEST(CopySeconds, AreFewerInFewerAndLargerGroups) {
  const double want = 28 * (kBlocks - kSingles / 2 + 2 * kLate) + kOnce + 3 * kLate;
  EXPECT_NEAR(copied({.blocks = 19}) / want, 1, 1e-4);
}

TEST(CopySeconds, AreDoubleWhereACopyWaitsForItsTurn) {
  EXPECT_DOUBLE_EQ(copied({.prefetch = 0}), 2 * copied({.prefetch = 1}));
}

TEST(CopySeconds, AreSharedByThePicturesOfABatch) {
  EXPECT_DOUBLE_EQ(copied({}, 4, 1), 4 * copied({}));
  EXPECT_DOUBLE_EQ(copied({}, 4, 2), 2 * copied({}));
}

}  // namespace braid::copy_seconds_test
