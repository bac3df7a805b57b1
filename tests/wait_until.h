// Waiting for what other threads do.
#pragma once

#include <chrono>
#include <thread>

namespace braid {

// Returns whether `holds` comes true in time, by default in far more than anything here takes.
template <class Condition>
[[nodiscard]] bool wait_until(const Condition& holds,
                              std::chrono::milliseconds patience = std::chrono::minutes(1)) {
  using Clock = std::chrono::steady_clock;
  const auto end = Clock::now() + patience;
  while (!holds()) {
    if (Clock::now() > end) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace braid
