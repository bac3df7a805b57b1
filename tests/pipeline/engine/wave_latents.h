// Tensors for the parts of a model that users call alone, and how far results are apart.
#pragma once

#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "braid/latents.h"

namespace braid {

inline Latents waves(const std::vector<std::int64_t>& shape, double pace) {
  std::int64_t count = 1;
  for (const auto extent : shape) count *= extent;
  Latents latents{.shape = shape, .values = {}};
  for (std::int64_t i = 0; i < count; ++i)
    latents.values.push_back(float(std::sin(pace * double(i + 1))));
  return latents;
}

inline double largest_difference(const Latents& a, const Latents& b) {
  EXPECT_EQ(a.shape, b.shape);
  double most = 0;
  for (std::size_t i = 0; i < a.values.size() && i < b.values.size(); ++i)
    most = std::max(most, std::abs(double(a.values[i]) - double(b.values[i])));
  return most;
}

}  // namespace braid
