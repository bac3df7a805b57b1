// Keeps the host at most one step ahead of the device. Otherwise all steps of a picture would be
// queued at once: progress would report unfinished steps, and a stop request would be noticed after
// all of them. The device always has a step queued, so it never waits.
#pragma once

#include <c10/core/Event.h>

#include <optional>

#include "comm/group.h"

namespace braid {

class StepPace {
 public:
  // A device may never finish, as when the other side of an exchange that was recorded is gone. All
  // waits end as those for ranks of `world` do: with PeerFailed when one of them fails, with
  // Cancelled when the run should stop; among several ranks with WorldLost, ten deadlines after
  // the wait began, as a step of a large picture may take longer than ranks wait for each other.
  StepPace(at::Device device, Group world) : device_(device), world_(std::move(world)) {}

  // Call once a whole step has been queued. Returns when the previous step is done; at once on a
  // CPU, where work is done as soon as it is given.
  void step_is_given();
  // Returns when all steps are done.
  void finish() const;
  template <class Result>
  Result finished(Result of_steps) const {
    finish();
    return of_steps;
  }

 private:
  at::Device device_;
  Group world_;
  std::optional<c10::Event> last_;
};

}  // namespace braid
