// Keeps the host at most one step ahead of the device. Otherwise all steps of a picture would be
// queued at once: progress would report unfinished steps, and a stop request would be noticed after
// all of them. The device always has a step queued, so it never waits.
#pragma once

#include <c10/core/Event.h>

#include <optional>

namespace braid {

class StepPace {
 public:
  explicit StepPace(at::Device device) : device_(device) {}

  // Call once a whole step has been queued. Returns when the previous step is done; at once on a
  // CPU, where work is done as soon as it is given.
  void step_is_given();

 private:
  at::Device device_;
  std::optional<c10::Event> last_;
};

}  // namespace braid
