#include "pipeline/engine/phase_log.h"

namespace braid {

double seconds_between(PhaseLog::Clock::time_point from, PhaseLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

void PhaseLog::enter(Phase phase, Clock::time_point now) {
  if (phase_ == phase) return;
  finish(now);
  phase_ = phase;
  auto& began = totals_[index(phase)].began;
  if (!began) began = entered_;
}

void PhaseLog::finish(Clock::time_point now) {
  if (phase_) totals_[index(*phase_)].seconds += seconds_between(entered_, now);
  entered_ = now;
  phase_.reset();
}

}  // namespace braid
