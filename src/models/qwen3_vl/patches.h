// A picture as the patches that vision towers of Qwen's see, and where they are. Patches that form
// one token are adjacent, in token order.
//
// Shape letters: N patches, P numbers of a patch.
#pragma once

#include <cstdint>

#include "base/json.h"
#include "ops/ops.h"

namespace braid {

struct VisionGrid {
  std::int64_t rows, columns;  // patches
};

// How a picture is cut.
struct PatchForm {
  std::int64_t patch = 16;  // pixels along each side
  std::int64_t frames = 2;  // per patch; a picture is repeated as often
  std::int64_t merge = 2;   // patches per token, along each side

  std::int64_t pixels_per_token() const { return patch * merge; }  // along each side
};

// [rows columns ...] in the order of the patches: [N ...].
Tensor in_patch_order(const Tensor& grid, std::int64_t merge);

// picture [3 H W], whose sides are multiples of a token's -> [N P]: each patch flattened over
// channels, frames, rows and columns.
Tensor flat_patches(const Tensor& picture_3HW, const PatchForm& form);

struct AxialRope {
  std::int64_t head_width, merge;
  double theta;
};

// Half of a head's angles encode the row, half the column. float32.
HalfSplitRope vision_rope(VisionGrid grid, const AxialRope& form, at::Device device);

// The base of these angles' wavelengths as a `vision_config` states it, 10000 by default. Throws
// InputError naming the field, also if the config asks for another kind of rotary embedding.
double read_axial_theta(const JsonObject& vision);

}  // namespace braid
