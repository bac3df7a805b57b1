// Predicts how long requests take, from the steps of earlier ones. Not thread-safe.
#pragma once

#include <map>
#include <optional>

#include "braid/braid.h"

namespace braid::serve {

// Steps that the engine takes for each picture of a complete request.
int steps_taken(const Request& request);

class Pace {
 public:
  // Time of one step of a round of `pictures`, and of everything in a round that is not a step.
  void step_took(const Request& request, int pictures, double seconds);
  void rest_took(const Request& request, double seconds);

  // Seconds for a complete request; nullopt until one has been measured. For new sizes, time is
  // assumed proportional to pixels.
  std::optional<double> seconds_of(const Request& request) const;
  // Seconds left after `step` steps of the round that begins with picture `first`.
  std::optional<double> seconds_left(const Request& request, int first, int step) const;

 private:
  using Averages = std::map<std::int64_t, double>;  // by work: pixels times evaluations per step

  static void add(Averages& averages, std::int64_t work, double seconds);
  static std::optional<double> of(const Averages& averages, std::int64_t work);

  Averages step_, rest_;
  int pictures_per_round_ = 1;
};

}  // namespace braid::serve
