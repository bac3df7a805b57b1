// Times of phases that come and go.
#include "pipeline/phase_log.h"

#include <gtest/gtest.h>

#include <thread>

namespace braid::phase_log_test {

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST(PhaseLog, SumsThePhasesThatComeAgain) {
  PhaseLog log;
  for (int picture = 0; picture < 2; ++picture) {
    log.enter(Phase::kDenoise);
    log.enter(Phase::kDenoise);
    wait_a_little();
    log.enter(Phase::kDecode);
  }
  log.finish();
  EXPECT_GE(log.seconds(Phase::kDenoise), 0.04);
  EXPECT_LT(log.seconds(Phase::kDecode), log.seconds(Phase::kDenoise));
  EXPECT_EQ(log.seconds(Phase::kText), 0);
}

TEST(PhaseLog, KnowsWhenAPhaseWasEnteredFirst) {
  PhaseLog log;
  log.enter(Phase::kLoad);
  wait_a_little();
  log.enter(Phase::kText);
  log.enter(Phase::kLoad);
  EXPECT_GE(seconds_between(*log.began(Phase::kLoad), *log.began(Phase::kText)), 0.02);
  EXPECT_FALSE(log.began(Phase::kDecode).has_value());
}

}  // namespace braid::phase_log_test
