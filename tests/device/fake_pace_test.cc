// Waiting for the steps of a GPU, which may never finish them.
#include <gmock/gmock.h>

#include "base/error.h"
#include "comm/thread.h"
#include "fake_gpu.h"
#include "pipeline/sampling/step_pace.h"
#include "weights/paging/accelerator_device.h"

namespace braid::fake_pace_test {

using testing::HasSubstr, testing::ThrowsMessage;

at::Device gpu(int rank) { return {at::kCUDA, at::DeviceIndex(rank)}; }

TEST(StepPace, GoesOnWhereTheStepBeforeHasEnded) {
  ThreadWorld world({.size = 1});
  world.run([](const Group& group) {
    StepPace pace(gpu(0), group);
    for (int step = 0; step < 3; ++step) pace.step_is_given();
    pace.finish();
  });
}

TEST(StepPace, EndsWithTheRunWhereAGpuNeverFinishes) {
  const fake_gpu::AreStuck stuck;
  ThreadWorld world({.size = 1});
  for (const bool is_last : {false, true}) {
    std::stop_source stop;
    const auto draw = [&](const Group& group) {
      StepPace pace(gpu(0), group);
      pace.step_is_given();  // waits for none
      stop.request_stop();
      is_last ? pace.finish() : pace.step_is_given();
    };
    EXPECT_THROW(world.run(draw, stop.get_token()), Cancelled);
  }
}

TEST(StepPace, EndsWithTheRankThatFails) {
  const fake_gpu::AreStuck stuck;
  ThreadWorld world({.size = 2, .deadline = std::chrono::minutes(10)});
  const auto draw = [](const Group& group) {
    if (group.rank() == 1) throw Error("out of paint");
    StepPace pace(gpu(0), group);
    pace.step_is_given();
    pace.step_is_given();
  };
  EXPECT_THAT([&] { world.run(draw); }, ThrowsMessage<Error>(HasSubstr("out of paint")));
}

// A single rank has as much time as its GPU takes.
TEST(StepPace, OfSeveralRanksHasADeadlineWhichSaysWhatHelps) {
  const fake_gpu::AreStuck stuck;
  ThreadWorld world({.size = 2, .deadline = std::chrono::milliseconds(1)});
  const auto draw = [](const Group& group) {
    StepPace pace(gpu(group.rank()), group);
    pace.step_is_given();
    pace.step_is_given();
  };
  EXPECT_THAT([&] { world.run(draw); }, ThrowsMessage<WorldLost>(HasSubstr("graphs off")));
}

// Its error is what whoever waited for a copy has got; thrown again it would end the program.
TEST(PagesOfAFailedGpu, AreGivenUpQuietly) {
  std::optional<AcceleratorPageDevice> pages;
  pages.emplace(gpu(0), Pin::kNever);
  const fake_gpu::AreStuck stuck;
  pages.reset();
}

}  // namespace braid::fake_pace_test
