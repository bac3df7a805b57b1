#include "app/print/phase_log.h"

namespace braid {
namespace {

double seconds_between(PhaseLog::Clock::time_point from, PhaseLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

void PhaseLog::enter(Phase phase) {
  if (phase_ == phase) return;
  finish();
  phase_ = phase;
  auto& first = totals_[index(phase)].first;
  if (!first) first = entered_;
}

void PhaseLog::finish() {
  const auto now = Clock::now();
  if (phase_) totals_[index(*phase_)].seconds += seconds_between(entered_, now);
  entered_ = now;
  phase_.reset();
}

double PhaseLog::seconds_to(Phase phase) const {
  const auto& first = totals_[index(phase)].first;
  return first ? seconds_between(begin_, *first) : 0;
}

double PhaseLog::seconds_so_far() const { return seconds_between(begin_, Clock::now()); }

}  // namespace braid
