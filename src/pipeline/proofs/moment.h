// When a device came to a place in what it was given: how long its work takes, not how long the
// host takes to ask for it.
#pragma once

#include <c10/core/Event.h>

#include <chrono>
#include <optional>

namespace braid {

class Moment {
 public:
  // Now: of a CPU by the clock, of other devices on the current stream.
  explicit Moment(c10::Device device);

  // Waits until the device has come to `later`, a moment of the same device.
  double seconds_until(const Moment& later) const;

 private:
  std::chrono::steady_clock::time_point clock_;
  std::optional<c10::Event> event_;
};

}  // namespace braid
