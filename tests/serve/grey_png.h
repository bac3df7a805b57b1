// A picture that clients bring.
#pragma once

#include "image/picture_file.h"
#include "pictures.h"

namespace braid::serve {

inline std::string grey_png(int width, int height, std::uint8_t level) {
  return encode_png(width, height, grey_picture(width, height, level).rgb);
}

}  // namespace braid::serve
