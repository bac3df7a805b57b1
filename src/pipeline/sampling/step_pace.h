// Keeps the host at most one step ahead of the device. Without it all steps of a picture would be
// given to the device at once: progress would be told of steps that are not done, and a wish to
// stop would be heard when all are. The device always has a step to work on, so it does not wait.
#pragma once

#include <c10/core/Event.h>

#include <optional>

namespace braid {

class StepPace {
 public:
  explicit StepPace(at::Device device) : device_(device) {}

  // Call when all of a step has been given to the device. Returns when the step before is done; at
  // once on a CPU, where a step is done when it has been given.
  void step_is_given();

 private:
  at::Device device_;
  std::optional<c10::Event> last_;
};

}  // namespace braid
