// How long each phase of a run took.
#pragma once

#include <array>
#include <chrono>
#include <optional>

#include "pipeline/memory/peaks.h"

namespace braid {

class PhaseLog {
 public:
  using Clock = std::chrono::steady_clock;

  // Ends the previous phase; no effect if it is the same.
  void enter(Phase phase, Clock::time_point now = Clock::now());
  void finish(Clock::time_point now = Clock::now());  // ends the last phase

  double seconds(Phase phase) const { return totals_[index(phase)].seconds; }
  // When the phase was entered first; unset if it never was.
  std::optional<Clock::time_point> began(Phase phase) const { return totals_[index(phase)].began; }

 private:
  struct Totals {
    double seconds = 0;
    std::optional<Clock::time_point> began = {};
  };
  static std::size_t index(Phase phase) { return std::size_t(phase); }

  Clock::time_point entered_;
  std::optional<Phase> phase_;
  std::array<Totals, kPhases.size()> totals_;
};

double seconds_between(PhaseLog::Clock::time_point from, PhaseLog::Clock::time_point to);

}  // namespace braid
