// How long requests take, from the steps of those before. Not for several threads at once.
#pragma once

#include <map>
#include <optional>

#include "braid/braid.h"

namespace braid::serve {

class Pace {
 public:
  // One step of a round of `pictures`, and all that is not steps of such a round.
  void step_took(const Request& request, int pictures, double seconds);
  void rest_took(const Request& request, double seconds);

  // Seconds of a complete request; nullopt until one of any size was seen. Of sizes that were not
  // seen the time is taken to grow with the pixels.
  std::optional<double> seconds_of(const Request& request) const;
  // Of what is left when `step` steps of the round that begins with picture `first` are done.
  std::optional<double> seconds_left(const Request& request, int first, int step) const;

 private:
  using Averages = std::map<std::int64_t, double>;  // by work: pixels times branches of guidance

  static void add(Averages& averages, std::int64_t work, double seconds);
  static std::optional<double> of(const Averages& averages, std::int64_t work);

  Averages step_, rest_;
  int pictures_per_round_ = 1;
};

}  // namespace braid::serve
