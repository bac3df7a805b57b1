#include "serve/metrics.h"

#include <gmock/gmock.h>

namespace braid::serve::metrics_test {

using testing::HasSubstr;

// What a scraper subtracts to get the last minute's mean would else move in steps of seconds.
TEST(Histogram, TellsSumsOfMonthsToTheMillisecond) {
  Histogram steps;
  steps.add(1'234'567.25);
  steps.add(0.001);
  EXPECT_THAT(steps.samples("step_seconds", ""), HasSubstr("step_seconds_sum 1234567.251\n"));
}

}  // namespace braid::serve::metrics_test
