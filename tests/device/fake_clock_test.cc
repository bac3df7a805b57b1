// Times are a GPU's own: those of fake_gpu.cc have a clock that an event moves on by a second.
#include <gtest/gtest.h>

#include "on_gpu.h"
#include "pipeline/proofs/bench.h"
#include "pipeline/proofs/moment.h"

namespace braid::fake_clock_test {

TEST(FakeClock, IsWhatMomentsGoBy) {
  const at::Device gpu(at::kCUDA, 0);
  const Moment first(gpu), second(gpu), third(gpu);
  EXPECT_EQ(first.seconds_until(second), 1);
  EXPECT_EQ(first.seconds_until(third), 2);
  const Moment here(at::kCPU);
  EXPECT_LT(here.seconds_until(Moment(at::kCPU)), 1);
}

TEST(FakeClock, IsWhatBenchGoesBy) {
  const auto model = std::filesystem::path(BRAID_SOURCE_DIR) / "models/demo";
  const auto result = bench(
      deploy({.model = model, .devices = {"cuda:0"}}),
      {.probe = {.width = 32, .height = 32, .max_sequence_length = 8}, .runs = 2, .warm_ups = 0});
  EXPECT_EQ(result.slowest().seconds, std::vector<double>(2, 1.0));
}

}  // namespace braid::fake_clock_test
