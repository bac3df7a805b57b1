#include "app/phase_log.h"

#include <algorithm>

namespace braid {
namespace {

double seconds_between(PhaseLog::Clock::time_point from, PhaseLog::Clock::time_point to) {
  return std::chrono::duration<double>(to - from).count();
}

}  // namespace

const char* name_of(Phase phase) {
  constexpr std::array<const char*, kPhases.size()> names = {"load", "text", "denoise", "decode"};
  return names[std::size_t(phase)];
}

void PhaseLog::enter(Phase phase) {
  if (phase_ == phase) return;
  finish();
  phase_ = phase;
  auto& first = totals_[index(phase)].first;
  if (!first) first = entered_;
}

void PhaseLog::finish() {
  const auto now = Clock::now();
  const auto peak = memory_.take();
  if (phase_) {
    auto& totals = totals_[index(*phase_)];
    totals.seconds += seconds_between(entered_, now);
    totals.peak_bytes = std::max(totals.peak_bytes, peak);
  } else {
    start_bytes_ = peak;
  }
  entered_ = now;
  phase_.reset();
}

double PhaseLog::seconds_to(Phase phase) const {
  const auto& first = totals_[index(phase)].first;
  return first ? seconds_between(begin_, *first) : 0;
}

double PhaseLog::seconds_so_far() const { return seconds_between(begin_, Clock::now()); }

}  // namespace braid
