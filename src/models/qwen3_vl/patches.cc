#include "models/qwen3_vl/patches.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "models/causal_lm/config.h"

namespace braid {

Tensor in_patch_order(const Tensor& grid, std::int64_t merge) {
  return grid.unflatten(1, {-1, merge}).unflatten(0, {-1, merge}).transpose(1, 2).flatten(0, 3);
}

Tensor flat_patches(const Tensor& picture_3HW, const PatchForm& form) {
  const auto p = form.patch;
  const auto grid_3RSpp = picture_3HW.unflatten(2, {-1, p}).unflatten(1, {-1, p}).transpose(2, 3);
  const auto patches = in_patch_order(grid_3RSpp.permute({1, 2, 0, 3, 4}), form.merge);
  return patches.unsqueeze(2).expand({-1, -1, form.frames, -1, -1}).flatten(1);
}

HalfSplitRope vision_rope(VisionGrid grid, const AxialRope& form, at::Device device) {
  const auto width = form.head_width / 2;
  const auto frequencies =
      1.0 / at::pow(form.theta, at::arange(0, width, 2, at::kFloat) / double(width));
  const auto angles = [&](std::int64_t count) {
    return at::outer(at::arange(count, at::kFloat), frequencies);
  };
  const auto rows = angles(grid.rows).unsqueeze(1), columns = angles(grid.columns).unsqueeze(0);
  const auto both =
      at::cat({rows.expand({-1, grid.columns, -1}), columns.expand({grid.rows, -1, -1})}, -1);
  const auto angle = in_patch_order(both, form.merge);
  return {.cos = angle.cos().to(device), .sin = angle.sin().to(device)};
}

double read_axial_theta(const JsonObject& vision) {
  const auto rope = rope_object(vision);
  const auto type = rope.string_or("rope_type", rope.string_or("type", "axial"));
  require(type == "axial" || type == "default", rope.source(),
          ": 'rope_type' should be axial, it is ", type);  // transformers reads default as axial
  const auto theta = rope.number_or("rope_theta", vision.number_or("rope_theta", 10000));
  require(theta > 0, rope.source(), ": 'rope_theta' should be positive, it is ", theta);
  return theta;
}

}  // namespace braid
