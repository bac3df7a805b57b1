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

  // `begin`: when the program started.
  explicit PhaseLog(Clock::time_point begin) : begin_(begin), entered_(begin) {}

  void enter(Phase phase);  // ends the previous phase; no effect if it is the same
  void finish();            // ends the last phase

  double seconds(Phase phase) const { return totals_[index(phase)].seconds; }
  double seconds_to(Phase phase) const;  // from the beginning to the first entry; 0 if none
  double seconds_so_far() const;

 private:
  struct Totals {
    double seconds = 0;
    std::optional<Clock::time_point> first = {};
  };
  static std::size_t index(Phase phase) { return std::size_t(phase); }

  Clock::time_point begin_, entered_;
  std::optional<Phase> phase_;
  std::array<Totals, kPhases.size()> totals_;
};

}  // namespace braid
