// A picture of random bytes, with alpha.
#pragma once

#include <ATen/ATen.h>

#include "braid/inputs.h"

namespace braid {

inline Pixels random_picture(int width, int height, std::uint64_t seed) {
  const auto values = [&](std::int64_t count, std::uint64_t of) {
    const auto drawn =
        at::randint(0, 256, {count}, at::detail::createCPUGenerator(2 * seed + of), at::kByte);
    const auto* const data = drawn.const_data_ptr<std::uint8_t>();
    return std::vector<std::uint8_t>(data, data + count);
  };
  const auto pixels = std::int64_t(width) * height;
  return {
      .width = width, .height = height, .rgb = values(3 * pixels, 0), .alpha = values(pixels, 1)};
}

}  // namespace braid
