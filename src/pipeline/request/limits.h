// The most that one request may ask for: settings, flags and a model's files have the same limits.
#pragma once

namespace braid {

constexpr int kMostSteps = 10'000, kMostFrames = 10'000;
constexpr int kMostPictures = 1'000'000;
constexpr int kMaxSide = 1 << 14;  // pixels

}  // namespace braid
