// Hexadecimal digits, written in lower case and read in both.
#pragma once

#include <concepts>
#include <string>

namespace braid {

inline char hex_digit(unsigned value) { return "0123456789abcdef"[value & 15]; }

// All digits of the number's type, the highest first: 16 of a std::uint64_t.
template <std::unsigned_integral Number>
std::string hex_digits(Number number) {
  std::string digits;
  for (int shift = 8 * int(sizeof number) - 4; shift >= 0; shift -= 4)
    digits += hex_digit(unsigned(number >> shift));
  return digits;
}

// The value of a digit, 0 to 15; -1 for other characters.
inline int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

}  // namespace braid
