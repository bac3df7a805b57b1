#include "pipeline/families/patches.h"

#include <ATen/ATen.h>

namespace braid {

Tensor pack_patches(const Tensor& latents_BZHW, std::int64_t patch) {
  // B Z h P w P
  const auto patches = latents_BZHW.unflatten(3, {-1, patch}).unflatten(2, {-1, patch});
  return patches.permute({0, 2, 4, 1, 3, 5}).flatten(3).flatten(1, 2);
}

Tensor unpack_patches(const Tensor& tokens_BNC, PatchGrid grid, std::int64_t patch) {
  // B h w Z P P
  const auto patches =
      tokens_BNC.unflatten(2, {-1, patch, patch}).unflatten(1, {grid.rows, grid.columns});
  return patches.permute({0, 3, 1, 4, 2, 5}).flatten(4).flatten(2, 3);
}

Tensor patch_positions(PatchGrid grid, at::Device device, std::int64_t first) {
  const auto options = at::TensorOptions(at::kFloat).device(device);
  const auto rows = at::arange(grid.rows, options).unsqueeze(1);
  const auto columns = at::arange(grid.columns, options).unsqueeze(0);
  const auto axes = at::broadcast_tensors({at::full({1, 1}, first, options), rows, columns});
  return at::stack(axes, -1).flatten(0, 1);
}

std::int64_t PatchFamily::num_tokens(PictureSize size) const {
  return grid(size).rows * grid(size).columns;
}

std::vector<std::int64_t> PatchFamily::latent_shape(PictureSize size) const {
  return {description().vae.latent_channels, patch() * grid(size).rows,
          patch() * grid(size).columns};
}

Tensor PatchFamily::pack(const Tensor& latents_BZHW) const {
  return pack_patches(latents_BZHW, patch());
}

Tensor PatchFamily::unpack(const Tensor& tokens_BNC, PictureSize size) const {
  return unpack_patches(tokens_BNC, grid(size), patch());
}

Tokens PatchFamily::reference(const Tensor& latents_1ZHW, int number) const {
  const PatchGrid grid{.rows = latents_1ZHW.size(2) / patch(),
                       .columns = latents_1ZHW.size(3) / patch()};
  return {.x_BLC = pack(latents_1ZHW),
          .ids_LA = patch_positions(grid, latents_1ZHW.device(), number + 1)};
}

std::vector<std::int64_t> PackedFamily::latent_shape(PictureSize size) const {
  return {shape().in_width, grid(size).rows, grid(size).columns};
}

Tensor PackedFamily::pack(const Tensor& latents_BCHW) const {
  return latents_BCHW.flatten(2).transpose(1, 2).contiguous();
}

Tensor PackedFamily::unpack(const Tensor& tokens_BNC, PictureSize size) const {
  return tokens_BNC.transpose(1, 2).unflatten(2, {grid(size).rows, grid(size).columns});
}

PatchGrid PatchFamily::grid(PictureSize size) const {
  const auto side = patch() * description().vae.downscale();
  return {.rows = size.height / side, .columns = size.width / side};
}

}  // namespace braid
