#include "comm/fate.h"

#include <gtest/gtest.h>

#include "comm/worlds.h"

namespace braid::fate_test {

template <class Failure>
std::exception_ptr make(const char* sentence) {
  return std::make_exception_ptr(Failure(sentence));
}

TEST(Fate, KeepsTheFirstFailureOfARun) {
  Fate fate;
  fate.begin({});
  fate.check();
  fate.fail(2, make<Error>("out of paint"));
  fate.fail(1, make<Error>("later"));
  EXPECT_TRUE(fate.failed());
  EXPECT_FALSE(fate.is_lost());
  EXPECT_EQ(fate.culprit(), 2);
  EXPECT_EQ(message_of(fate.cause()), "out of paint");
  EXPECT_EQ(failure_of([&] { fate.check(); }), "rank 2 failed: out of paint");
  EXPECT_THROW(fate.check(), PeerFailed);
}

TEST(Fate, ForgetsAFailureAndBeginsAnEpoch) {
  Fate fate;
  EXPECT_EQ(fate.epoch(), 0u);
  fate.fail(2, make<Error>("out of paint"));
  fate.recover();
  fate.begin({});
  fate.check();
  EXPECT_FALSE(fate.failed());
  EXPECT_EQ(fate.cause(), nullptr);
  EXPECT_EQ(fate.epoch(), 1u);
}

TEST(Fate, KeepsALossForEver) {
  Fate fate;
  fate.fail(1, make<Error>("out of paint"));
  fate.fail(2, make<WorldLost>("it has gone"));
  fate.fail(0, make<WorldLost>("later"));
  EXPECT_TRUE(fate.is_lost());
  EXPECT_EQ(fate.culprit(), 1);
  EXPECT_EQ(fate.loss().rank, 2);
  fate.recover();
  EXPECT_TRUE(fate.failed());
  EXPECT_EQ(fate.epoch(), 0u);
  EXPECT_EQ(failure_of([&] { fate.begin({}); }), "rank 2 failed: it has gone");
}

TEST(Fate, StopsTheRunThatIsAskedTo) {
  Fate fate;
  std::stop_source stop;
  fate.begin(stop.get_token());
  fate.check();
  stop.request_stop();
  EXPECT_THROW(fate.check(), Cancelled);
  fate.begin({});
  fate.check();
}

}  // namespace braid::fate_test
