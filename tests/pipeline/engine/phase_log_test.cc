// Times of phases that come and go.
#include "pipeline/engine/phase_log.h"

#include <gtest/gtest.h>

namespace braid::phase_log_test {

using std::chrono::seconds;

TEST(PhaseLog, SumsThePhasesThatComeAgain) {
  PhaseLog log;
  PhaseLog::Clock::time_point now;
  for (int picture = 0; picture < 2; ++picture) {
    log.enter(Phase::kDenoise, now);
    log.enter(Phase::kDenoise, now += seconds(1));
    log.enter(Phase::kDecode, now += seconds(4));
    now += seconds(2);
  }
  log.finish(now);
  EXPECT_EQ(log.seconds(Phase::kDenoise), 10);
  EXPECT_EQ(log.seconds(Phase::kDecode), 4);
  EXPECT_EQ(log.seconds(Phase::kText), 0);
}

TEST(PhaseLog, KnowsWhenAPhaseWasEnteredFirst) {
  PhaseLog log;
  const PhaseLog::Clock::time_point start{seconds(100)};
  log.enter(Phase::kLoad, start);
  log.enter(Phase::kText, start + seconds(3));
  log.enter(Phase::kLoad, start + seconds(5));
  EXPECT_EQ(log.began(Phase::kLoad), start);
  EXPECT_EQ(seconds_between(start, *log.began(Phase::kText)), 3);
  EXPECT_FALSE(log.began(Phase::kDecode).has_value());
}

}  // namespace braid::phase_log_test
