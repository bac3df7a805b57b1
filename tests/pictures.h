// Pictures to give to what is tested.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "braid/inputs.h"

namespace braid {

// All of one level of grey: black, unless told otherwise.
inline Pixels grey_picture(int width, int height, std::uint8_t level = 0) {
  return {.width = width,
          .height = height,
          .rgb = std::vector<std::uint8_t>(std::size_t(width) * std::size_t(height) * 3, level)};
}

// Noise in all colours. With the usual factor it is what colours() of tools/parity/dump_pictures.py
// draws, and what Pillow and the web UI were given for the digests in tests.
inline Pixels noise_picture(int width, int height, std::uint64_t factor = 31) {
  auto picture = grey_picture(width, height);
  for (std::uint64_t i = 0; i < picture.rgb.size(); ++i)
    picture.rgb[i] = std::uint8_t((i * i * factor + i * 7) % 65537 % 256);
  return picture;
}

// The first 16 digits of the SHA-256 of its colours.
inline std::string picture_digest(const Pixels& picture) {
  return sha256_hex({reinterpret_cast<const char*>(picture.rgb.data()), picture.rgb.size()})
      .substr(0, 16);
}

}  // namespace braid
