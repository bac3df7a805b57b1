#include "pipeline/families/patches.h"

#include <ATen/ATen.h>

namespace braid {

Tensor pack_patches(const Tensor& latents_BZHW) {
  const auto patches = latents_BZHW.unflatten(3, {-1, 2}).unflatten(2, {-1, 2});  // B Z h 2 w 2
  return patches.permute({0, 2, 4, 1, 3, 5}).flatten(3).flatten(1, 2);
}

Tensor unpack_patches(const Tensor& tokens_BNC, LatentShape shape) {
  const auto patches =
      tokens_BNC.unflatten(2, {shape.channels, 2, 2}).unflatten(1, {shape.height / 2, -1});
  return patches.permute({0, 3, 1, 4, 2, 5}).flatten(4).flatten(2, 3);  // B h w Z 2 2 before
}

Tensor patch_positions(LatentShape shape, at::Device device) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto rows = at::arange(shape.height / 2, options).unsqueeze(1);
  const auto columns = at::arange(shape.width / 2, options).unsqueeze(0);
  const auto grid = at::broadcast_tensors({at::zeros({1, 1}, options), rows, columns});
  return at::stack(grid, -1).flatten(0, 1);
}

}  // namespace braid
