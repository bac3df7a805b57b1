// The most that one request may ask for: settings, flags and a model's files have the same limits.
#pragma once

#include <cfloat>
#include <cmath>

#include "base/error.h"

namespace braid {

constexpr int kMostSteps = 10'000, kMostFrames = 10'000;
constexpr int kMostPictures = 1'000'000;
constexpr int kMaxSide = 1 << 14;  // pixels

// `value`; throws InputError unless it is finite in float32, in which models compute.
inline double checked_number(const char* name, double value) {
  require(std::abs(value) <= FLT_MAX, "the ", name, " should be a finite number",
          std::isfinite(value) ? " of at most 3.4e38" : "", ", it is ", value);
  return value;
}

// `value`; throws InputError unless it lies between the two.
template <class Number>
Number within(const char* name, Number value, Number low, Number high) {
  require(value >= low && value <= high, "the ", name, " should lie between ", low, " and ", high,
          ", it is ", value);
  return value;
}

}  // namespace braid
