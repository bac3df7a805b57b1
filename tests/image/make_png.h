// PNGs that encode_png does not write: any chunk, with a valid checksum, in any order.
#pragma once

#include <zlib.h>

#include <cstdint>
#include <string>
#include <string_view>

namespace braid {

inline std::string big_endian(std::uint32_t value) {
  return {char(value >> 24), char(value >> 16), char(value >> 8), char(value)};
}

inline std::string chunk(std::string_view type, std::string_view bytes) {
  const std::string body = std::string(type) + std::string(bytes);
  const auto sum = crc32_z(0, reinterpret_cast<const Bytef*>(body.data()), body.size());
  return big_endian(std::uint32_t(bytes.size())) + body + big_endian(std::uint32_t(sum));
}

inline std::string packed(std::string_view bytes) {
  std::string out(compressBound(bytes.size()), '\0');
  uLongf size = out.size();
  compress(reinterpret_cast<Bytef*>(out.data()), &size,
           reinterpret_cast<const Bytef*>(bytes.data()), bytes.size());
  out.resize(size);
  return out;
}

// IHDR for `depth` bits in PNG's colour type 0 grey, 2 RGB, 3 palette, 4 grey + alpha, 6 RGBA.
inline std::string ihdr(std::uint32_t width, std::uint32_t height, int depth, int color_type) {
  std::string bytes = big_endian(width) + big_endian(height);
  for (const int value : {depth, color_type, 0, 0, 0}) bytes += char(value);
  return chunk("IHDR", bytes);
}

// `rows`: each row preceded by its filter, 0 for none. `extra`: chunks between IHDR and IDAT.
inline std::string png_of(const std::string& header, std::string_view rows,
                          const std::string& extra = {}) {
  return "\x89PNG\r\n\x1a\n" + header + extra + chunk("IDAT", packed(rows)) + chunk("IEND", "");
}

}  // namespace braid
