// Latents as the autoencoder has them and as a transformer reads them: 2 x 2 patches, the channels
// of a latent one after another.
//
// Shape letters: B batch, Z latent channels, H W latent rows and columns, N = (H/2)(W/2) tokens.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

using at::Tensor;

struct LatentShape {
  std::int64_t channels, height, width;  // unpacked; height and width even
  std::int64_t num_tokens() const { return (height / 2) * (width / 2); }
};

Tensor pack_patches(const Tensor& latents_BZHW);                     // -> [B N 4Z]
Tensor unpack_patches(const Tensor& tokens_BNC, LatentShape shape);  // -> [B Z H W]

// Positions [N 3] of the packed tokens: 0, row, column. float32.
Tensor patch_positions(LatentShape shape, at::Device device);

}  // namespace braid
