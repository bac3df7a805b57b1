// Ranks whose work takes longer than the deadline that others wait for them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "comm/thread.h"
#include "pipeline/engine.h"
#include "pipeline/memory/peaks.h"

namespace braid::unequal_work_test {

using namespace std::chrono_literals;

// Long enough for collectives on a busy machine; work takes longer.
constexpr auto kDeadline = 600ms, kWork = 900ms;

const Layout kTwoRanks{.tp = 2, .deadline = 0.6};

// The first rank alone loads text encoders; here it is its hook that takes time.
TEST(UnequalWork, OfLoadingMayTakeLongerThanTheDeadline) {
  bool has_waited = false;
  const auto wait_once = [&](const Progress& progress) {
    if (progress.phase != Phase::kLoad || progress.done < progress.total || has_waited) return;
    has_waited = true;
    std::this_thread::sleep_for(kWork);
  };
  const Engine engine({.model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo",
                       .dtype = Dtype::kFloat32,
                       .layout = kTwoRanks},
                      {.progress = wait_once}, Measure::kPeaks);
  EXPECT_TRUE(has_waited);
  EXPECT_EQ(engine.loaded().bytes_read.size(), 2u);
}

TEST(UnequalWork, BeforePeaksAreGatheredMayTakeLongerThanTheDeadline) {
  run_ranks({.size = 2, .deadline = kDeadline}, [](const Group& world) {
    const PeakMeter meter;
    if (world.rank() == 0) std::this_thread::sleep_for(kWork);
    EXPECT_EQ(meter.gather(world, at::kCPU).size(), 2u);
  });
}

}  // namespace braid::unequal_work_test
