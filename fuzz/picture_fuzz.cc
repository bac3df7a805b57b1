// Any bytes are either a picture with as many pixels as it says, or give a one-sentence error; the
// same holds for its text.
#include <cstdlib>

#include "base/error.h"
#include "image/picture_file.h"
#include "image/resize.h"

constexpr std::size_t kMostText = 1 << 20;  // a PNG's unpacks to this; UTF-16 grows by a half

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  try {
    const auto picture = braid::decode_picture(bytes, "input", 1 << 16);
    const auto pixels = std::size_t(picture.width) * std::size_t(picture.height);
    if (pixels > 1 << 16 || picture.rgb.size() != 3 * pixels) std::abort();
    const auto small = braid::resized(picture, 16, 16, braid::Resampling::kLanczos);
    if (small.rgb.size() != 16 * 16 * 3) std::abort();
  } catch (const braid::InputError&) {
  }
  try {
    for (const auto& [key, value] : braid::read_picture_text(bytes, "input"))
      if (key.size() + value.size() > kMostText + 2 * size) std::abort();
  } catch (const braid::InputError&) {
  }
  return 0;
}
