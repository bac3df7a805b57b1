// Signals, each in its own process.
#include "app/machine/stop_signals.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <filesystem>

#include "base/file.h"

namespace braid::stop_signals_test {

using std::chrono::milliseconds;

void wait(milliseconds time) { std::this_thread::sleep_for(time); }

class StopSignalsTest : public testing::Test {
 protected:
  StopSignalsTest() { testing::FLAGS_gtest_death_test_style = "threadsafe"; }
};

TEST_F(StopSignalsTest, AskToStop) {
  const auto body = [] {
    const StopSignals signals;
    ::kill(::getpid(), SIGTERM);
    while (!signals.token().stop_requested()) wait(milliseconds(1));
    std::_Exit(signals.received() == SIGTERM ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), testing::_);
}

TEST_F(StopSignalsTest, EndAProgramThatDoesNotHear) {
  const auto body = [] {
    const StopSignals signals(milliseconds(50));
    ::kill(::getpid(), SIGINT);
    wait(std::chrono::seconds(20));
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(128 + SIGINT), testing::_);
}

TEST_F(StopSignalsTest, EndItAtOnceWhenTheyComeTwice) {
  const auto body = [] {
    const StopSignals signals(std::chrono::hours(1));
    ::kill(::getpid(), SIGINT);
    while (!signals.token().stop_requested()) wait(milliseconds(1));
    ::kill(::getpid(), SIGTERM);
    wait(std::chrono::seconds(20));
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(128 + SIGINT), testing::_);
}

// An operator's script, made for another server, may send it after the log was rotated.
TEST_F(StopSignalsTest, LeaveAProgramThatIgnoresOthersRunning) {
  const auto body = [] {
    StopSignals signals(std::chrono::hours(1), {SIGUSR1, SIGUSR2});
    std::atomic<int> heard = 0;
    auto hearing = signals.on_ignored([&](int signal) {
      std::fputs(signal_name(signal), stderr);
      ++heard;
    });
    const auto send_both = [&](int before) {
      for (const int signal : {SIGUSR1, SIGUSR2}) {
        ::kill(::getpid(), signal);
        while (heard == before) wait(milliseconds(1));
        before = heard;
      }
    };
    send_both(0);
    if (signals.token().stop_requested()) std::_Exit(1);
    ::kill(::getpid(), SIGHUP);
    while (!signals.token().stop_requested()) wait(milliseconds(1));
    send_both(2);
    hearing.reset();
    ::kill(::getpid(), SIGUSR1);
    wait(milliseconds(50));
    std::_Exit(heard == 4 && signals.received() == SIGHUP ? 0 : 1);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), "SIGUSR1SIGUSR2SIGUSR1SIGUSR2");
}

// A write to a log that nobody reads hangs like this.
void hang() { wait(std::chrono::seconds(20)); }

TEST_F(StopSignalsTest, EndItAtOnceThoughACallbackHangs) {
  const auto body = [] {
    const StopSignals signals(std::chrono::hours(1));
    std::atomic<bool> is_asked = false;
    const std::stop_callback on_stop(signals.token(), [&] { is_asked = true, hang(); });
    ::kill(::getpid(), SIGTERM);
    while (!is_asked) wait(milliseconds(1));
    ::kill(::getpid(), SIGTERM);
    hang();
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(128 + SIGTERM), testing::_);
}

TEST_F(StopSignalsTest, EndAProgramWhoseCallbackHangs) {
  const auto body = [] {
    const StopSignals signals(milliseconds(50));
    const std::stop_callback on_stop(signals.token(), hang);
    ::kill(::getpid(), SIGTERM);
    hang();
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(128 + SIGTERM), testing::_);
}

TEST_F(StopSignalsTest, LetAFileBeWrittenToItsEnd) {
  const auto body = [] {
    StopSignals signals(milliseconds(1));
    {
      const auto whole = signals.delay_exit();
      ::kill(::getpid(), SIGINT);
      wait(milliseconds(200));
      std::fputs("written", stderr);
    }
    wait(std::chrono::seconds(20));
    std::_Exit(0);
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(128 + SIGINT), "written");
}

TEST_F(StopSignalsTest, LeaveIgnoredSignalsIgnored) {
  const auto body = [] {
    std::signal(SIGHUP, SIG_IGN);
    const StopSignals signals(milliseconds(1));
    ::kill(::getpid(), SIGHUP);
    wait(milliseconds(100));
    std::_Exit(signals.received());
  };
  EXPECT_EXIT(body(), testing::ExitedWithCode(0), testing::_);
}

}  // namespace braid::stop_signals_test
