// Times of phases that come and go.
#include "app/print/phase_log.h"

#include <gtest/gtest.h>

#include <thread>

namespace braid::phase_log_test {

void wait_a_little() { std::this_thread::sleep_for(std::chrono::milliseconds(20)); }

TEST(PhaseLog, SumsThePhasesThatComeAgain) {
  PhaseLog log(PhaseLog::Clock::now());
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

TEST(PhaseLog, CountsFromTheBeginningOfTheProgram) {
  PhaseLog log(PhaseLog::Clock::now());
  wait_a_little();
  log.enter(Phase::kLoad);
  wait_a_little();
  log.enter(Phase::kText);
  EXPECT_GE(log.seconds_to(Phase::kLoad), 0.02);
  EXPECT_GE(log.seconds_to(Phase::kText), 0.04);
  EXPECT_EQ(log.seconds_to(Phase::kDecode), 0);
  EXPECT_GE(log.seconds_so_far(), log.seconds_to(Phase::kText));
}

}  // namespace braid::phase_log_test
