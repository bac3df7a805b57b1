// Pictures as an autoencoder's latents.
#pragma once

#include <cstdint>
#include <vector>

namespace braid {

struct Latents {
  std::vector<std::int64_t> shape;  // [batch, tokens, width] packed, or the autoencoder's shape
  std::vector<float> values;        // row-major
};

}  // namespace braid
