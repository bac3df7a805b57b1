// The flags of pictures that a request brings.
#pragma once

#include <cstdint>
#include <filesystem>
#include <optional>
#include <vector>

#include "braid/inputs.h"
#include "image/png.h"

namespace braid {

struct PictureFlags {
  std::filesystem::path init, mask;  // empty: not given
  bool mask_is_alpha = false;        // the transparent part of `init`
  std::vector<std::filesystem::path> references, controls;
  std::vector<double> reference_scales;                          // one each
  std::vector<double> control_scales, control_from, control_to;  // one each, or one for all
  std::vector<int> control_modes;                                // the same
  std::optional<double> strength;
  double mask_blur = 0;
  std::optional<int> padding_crop;
  ReferenceCache reference_cache = ReferenceCache::kAuto;
  std::optional<int> resolution;
  std::uint64_t max_pixels = kMaxPixels;
};

}  // namespace braid
