// Ranks whose work takes longer than the deadline that others wait for them.
#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <chrono>
#include <thread>
#include <utility>

#include "comm/stepped_clock.h"
#include "pipeline/engine/engine.h"
#include "pipeline/memory/peaks.h"

namespace braid::unequal_work_test {

using namespace std::chrono_literals;

// Long enough for collectives on a busy machine; work takes longer.
constexpr auto kWork = 900ms;
constexpr double kDeadline = 0.6;

const Layout kTwoRanks{.tp = 2, .deadline = kDeadline};
const std::filesystem::path kModel = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";

// The first rank alone loads text encoders; here it is its hook that takes time.
TEST(UnequalWork, OfLoadingMayTakeLongerThanTheDeadline) {
  bool has_waited = false;
  const auto wait_once = [&](const Progress& progress) {
    if (progress.phase != Phase::kLoad || progress.done < progress.total || has_waited) return;
    has_waited = true;
    std::this_thread::sleep_for(kWork);
  };
  const Engine engine({.model = kModel, .dtype = Dtype::kFloat32, .layout = kTwoRanks},
                      {.progress = wait_once}, Measure::kPeaks);
  EXPECT_TRUE(has_waited);
  EXPECT_EQ(engine.loaded().bytes_read.size(), 2u);
}

// A hook that takes longer than the deadline the first time that it is called after a step.
template <class Told>
std::function<void(Told)> slow_once(bool& has_waited) {
  return [&has_waited](Told told) {
    if constexpr (std::is_same_v<Told, const Progress&>)
      if (told.phase != Phase::kDenoise || told.done == 0) return;
    if (!std::exchange(has_waited, true)) std::this_thread::sleep_for(kWork);
  };
}

// Ranks that wait for the first one meanwhile would give up, and the pipeline with them.
TEST(SlowUnequalWork, OfHooksMayTakeLongerThanTheDeadline) {
  bool has_waited = false;
  const std::pair<const char*, Hooks> slow[] = {
      {"progress", {.progress = slow_once<const Progress&>(has_waited)}},
      {"picture", {.picture = slow_once<Picture&>(has_waited)}},
      {"preview", {.preview = slow_once<const Preview&>(has_waited)}},
      {"step_end", {.step_end = slow_once<StepEnd&>(has_waited)}},
      {"warning", {.warning = slow_once<const std::string&>(has_waited)}}};
  const Request request{.prompts = {"a red circle on a blue background"},  // more than four tokens
                        .width = 32,
                        .height = 32,
                        .steps = 2,
                        .max_sequence_length = 4,
                        .num_images = 2};
  for (const auto& layout : {Layout{.tp = 2, .text = TextRanks::kShared, .deadline = kDeadline},
                             Layout{.ring = 2, .deadline = kDeadline}}) {
    const Engine engine(
        {.model = kModel, .dtype = Dtype::kFloat32, .layout = layout, .condition_cache = 0}, {});
    for (const auto& [name, hooks] : slow) {
      // Only encoders wait in another way under another layout.
      if (layout.ring > 1 && !hooks.warning) continue;
      SCOPED_TRACE(name);
      has_waited = false;
      EXPECT_EQ(engine.generate(request, hooks).pictures.size(), 2u);
      EXPECT_TRUE(has_waited);
    }
  }
}

TEST(UnequalWork, BeforePeaksAreGatheredMayTakeLongerThanTheDeadline) {
  SteppedClock clock;
  clock.run_ranks(2, [&](const Group& world) {
    const PeakMeter meter;
    if (world.rank() == 0) clock.outlast_deadline(world);
    EXPECT_EQ(meter.gather(world, at::kCPU).size(), 2u);
  });
}

}  // namespace braid::unequal_work_test
