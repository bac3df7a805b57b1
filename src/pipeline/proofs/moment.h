// A point in a device's queue of work. It measures how long the work takes, not how long the host
// takes to submit it.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace braid {

class Moment {
 public:
  // Now: on a CPU by the clock, on other devices in the current stream.
  explicit Moment(c10::Device device);

  // Waits until the device reaches `later`, a moment of the same device.
  double seconds_until(const Moment& later) const;

 private:
  std::chrono::steady_clock::time_point clock_;
  std::optional<c10::Event> event_;
};

}  // namespace braid
