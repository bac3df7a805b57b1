// What each phase of a run took: time and memory.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <optional>

#include "app/memory_meter.h"
#include "braid/braid.h"

namespace braid {

constexpr std::array<Phase, 4> kPhases = {Phase::kLoad, Phase::kText, Phase::kDenoise,
                                          Phase::kDecode};
const char* name_of(Phase phase);  // "load"

class PhaseLog {
 public:
  using Clock = std::chrono::steady_clock;

  // `begin`: when the program began.
  explicit PhaseLog(Clock::time_point begin) : begin_(begin), entered_(begin) {}

  void enter(Phase phase);  // ends the one before; nothing happens when that is the same
  void finish();            // ends the last

  double seconds(Phase phase) const { return totals_[index(phase)].seconds; }
  std::uint64_t peak_bytes(Phase phase) const { return totals_[index(phase)].peak_bytes; }
  std::uint64_t start_bytes() const { return start_bytes_; }  // the peak before the first phase
  bool peaks_are_exact() const { return memory_.is_exact(); }
  double seconds_to(Phase phase) const;  // from the beginning to the first entry; 0: none
  double seconds_so_far() const;

 private:
  struct Totals {
    double seconds = 0;
    std::uint64_t peak_bytes = 0;
    std::optional<Clock::time_point> first = {};
  };
  static std::size_t index(Phase phase) { return std::size_t(phase); }

  Clock::time_point begin_, entered_;
  std::optional<Phase> phase_;
  std::array<Totals, kPhases.size()> totals_;
  std::uint64_t start_bytes_ = 0;
  MemoryMeter memory_;
};

}  // namespace braid
