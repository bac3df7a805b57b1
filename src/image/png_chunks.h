// The outer structure of a PNG: a signature, then chunks of length, type, bytes and checksum.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

struct PngChunk {
  std::string_view type;  // four letters
  std::string_view bytes;
};

struct PngHeader {
  std::uint32_t width = 0, height = 0;
  int channels = 0;        // 1 to 4; a palette's pixels have one
  int bits_per_pixel = 0;  // as stored: depth times channels, 1 to 64
};

// Whether the file is a PNG, or begins like one whose signature was cut, or changed as bytes are
// that a program takes for text.
bool begins_like_png(std::string_view bytes);

// The chunks up to and including IEND; they point into `png`. Throws InputError naming `source`
// unless the signature is whole, the first is IHDR, the last is IEND and all checksums match.
std::vector<PngChunk> png_chunks(std::string_view png, const std::string& source);

// Reads IHDR. Throws InputError for sizes of 0 and for depths that the format does not allow.
PngHeader png_header(const PngChunk& ihdr, const std::string& source);

}  // namespace braid
