// Whole numbers in files and messages, in either byte order, whatever the machine's own is.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace braid {

// Reads `count` bytes, 1 to 8.
template <class Byte>
std::uint64_t big_endian(const Byte* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = 0; i < count; ++i) value = value << 8 | std::uint8_t(bytes[i]);
  return value;
}

template <class Byte>
std::uint64_t little_endian(const Byte* bytes, std::size_t count) {
  std::uint64_t value = 0;
  for (std::size_t i = count; i-- > 0;) value = value << 8 | std::uint8_t(bytes[i]);
  return value;
}

// Appends the lowest `count` bytes of `value`.
inline void append_big_endian(std::string& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = count; i-- > 0;) bytes += char(value >> (8 * i));
}

inline void append_little_endian(std::string& bytes, std::uint64_t value, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) bytes += char(value >> (8 * i));
}

}  // namespace braid
