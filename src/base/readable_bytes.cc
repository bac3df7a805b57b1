#include "base/readable_bytes.h"

#include <array>
#include <cmath>
#include <cstdio>

namespace braid {
namespace {

std::string format(const char* pattern, double value) {
  std::array<char, 64> text{};
  std::snprintf(text.data(), text.size(), pattern, value);
  return text.data();
}

}  // namespace

std::string three_digits(double value) {
  const double size = std::abs(value);
  if (size >= 99.95) return format("%.0f", value);
  if (size >= 9.995) return format("%.1f", value);
  if (size >= 0.9995) return format("%.2f", value);
  return format("%.3f", value);
}

std::string readable_bytes(double bytes) {
  constexpr std::array<const char*, 5> units = {"bytes", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  while (unit + 1 < units.size() && bytes >= 999.5) {
    bytes /= 1000;
    ++unit;
  }
  const auto number = unit == 0 ? format("%.0f", bytes) : three_digits(bytes);
  return number + " " + units[unit];
}

}  // namespace braid
