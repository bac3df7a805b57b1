// Room for bodies that are read and handled at the same time: they take memory.
#pragma once

#include <cstdint>
#include <optional>

namespace braid::serve {

class BodyPlaces {
 public:
  // The places taken by a body of so many bytes; a body of unknown length may be large. Nothing if
  // too many are taken.
  std::optional<int> claim(std::optional<std::uint64_t> bytes) {
    const int wanted = bytes && *bytes <= kSmall ? 0 : bytes && *bytes <= kLarge ? 1 : kOfLarge;
    if (taken_ + wanted > kMost && wanted > 0) return {};
    taken_ += wanted;
    return wanted;
  }
  void release(int places) { taken_ -= places; }

 private:
  static constexpr std::uint64_t kSmall = 2 << 10, kLarge = 256 << 10;  // bytes
  static constexpr int kMost = 64, kOfLarge = 4;

  int taken_ = 0;
};

}  // namespace braid::serve
