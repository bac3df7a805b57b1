#include "pipeline/sampling/step_pace.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>
#include <thread>

#include "base/error.h"
#include "comm/fate.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

constexpr int kDeadlinesOfAStep = 10;

// The first glances cost nothing: most steps end while the host looks.
void pause(Clock::duration waited) {
  if (waited < std::chrono::milliseconds(1)) return std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::microseconds(100));
}

}  // namespace

void StepPace::step_is_given() {
  if (device_.is_cpu()) return;
  finish();
  last_.emplace(device_.type());
  last_->record(c10::impl::VirtualGuardImpl(device_.type()).getStream(device_));
}

void StepPace::finish() const {
  if (!last_) return;
  const auto begin = Clock::now();
  while (!last_->query()) {
    world_.poll();
    const auto waited = Clock::now() - begin;
    const auto deadline = world_.deadline();
    if (deadline && waited > kDeadlinesOfAStep * *deadline)
      throw WorldLost(
          text_of("a step should end on ", device_, " within ",
                  std::chrono::duration<double>(kDeadlinesOfAStep * *deadline).count(),
                  " s, ten times the deadline, it has not: drawing with graphs off, or ",
                  "a process for each rank (torchrun), may help"));
    pause(waited);
  }
}

}  // namespace braid
