#include "serve/http/alarm.h"

#include <gtest/gtest.h>

namespace braid::serve::alarm_test {

using std::chrono::milliseconds;

TEST(Alarm, RingsOnceForTheLastTimeItWasSet) {
  boost::asio::io_context io;
  Alarm alarm(io.get_executor());
  int first = 0, second = 0;
  alarm.set(milliseconds(0), [&] { ++first; });
  alarm.set(milliseconds(1), [&] { ++second; });
  io.run();
  EXPECT_EQ(first, 0);
  EXPECT_EQ(second, 1);
}

// Both timers have run out when the context first looks, so that both handlers are queued.
TEST(Alarm, DoesNotRingOnceItIsCancelled) {
  boost::asio::io_context io;
  Alarm alarm(io.get_executor());
  boost::asio::steady_timer earlier(io, milliseconds(-2));
  bool has_rung = false, is_cancelled = false;
  alarm.set(milliseconds(-1), [&] { has_rung = true; });
  earlier.async_wait([&](const boost::system::error_code& error) {
    is_cancelled = !error;
    alarm.cancel();
  });
  io.run();
  EXPECT_TRUE(is_cancelled);
  EXPECT_FALSE(has_rung);
}

TEST(Alarm, DoesNotRingOnceItIsDestroyed) {
  boost::asio::io_context io;
  auto alarm = std::make_unique<Alarm>(io.get_executor());
  boost::asio::steady_timer earlier(io, milliseconds(-2));
  bool has_rung = false;
  alarm->set(milliseconds(-1), [&] { has_rung = true; });
  earlier.async_wait([&](const boost::system::error_code&) { alarm.reset(); });
  io.run();
  EXPECT_FALSE(alarm) << "the earlier timer has run out";
  EXPECT_FALSE(has_rung);
}

}  // namespace braid::serve::alarm_test
