// A clock that stands still until a rank lets time pass, for ranks that are threads. Tests of long
// waits are then quick, and no other rank is late, however busy the machine is.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <mutex>
#include <thread>

#include "comm/thread.h"
#include "wait_until.h"

namespace braid {

class SteppedClock {
 public:
  using Clock = Fate::Clock;

  // Runs as run_ranks does, with a deadline measured by this clock.
  void run_ranks(int size, const std::function<void(const Group&)>& body) {
    ThreadWorld({.size = size, .deadline = kDeadline}, link_devices, [this] {
      return now();
    }).run(body);
  }

  // Lets more time than a deadline pass while all other ranks of `world` wait for this one. Throws
  // PeerFailed if one of them did not wait so long.
  void outlast_deadline(const Group& world) {
    await_glances(world);
    for (int i = 0; i < 2; ++i) {
      {
        const std::scoped_lock lock(mutex_);
        now_ += kDeadline * 3 / 4;  // less than a deadline: an endless wait reads the clock twice
      }
      await_glances(world);
    }
  }

 private:
  static constexpr std::chrono::milliseconds kDeadline = std::chrono::seconds(10);

  Clock::time_point now() {
    const std::scoped_lock lock(mutex_);
    ++num_readings_[std::this_thread::get_id()];
    return now_;
  }
  // A rank that waits reads the clock when it begins, and then at each glance.
  void await_glances(const Group& world) {
    {
      const std::scoped_lock lock(mutex_);
      num_readings_.clear();
    }
    EXPECT_TRUE(wait_until([&] {
      world.poll();
      const std::scoped_lock lock(mutex_);
      const auto has_glanced = [](const auto& readings) { return readings.second >= 4; };
      return std::count_if(num_readings_.begin(), num_readings_.end(), has_glanced) + 1 ==
             world.size();
    })) << "the other ranks do not wait";
  }

  std::mutex mutex_;
  Clock::time_point now_{};
  std::map<std::thread::id, int> num_readings_;
};

}  // namespace braid
