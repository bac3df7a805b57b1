// Latents as the autoencoder has them and as the transformer reads them.
//
// Shape letters: B batch, Z latent channels, H W latent rows and columns, N = (H/2)(W/2) tokens.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <span>
#include <vector>

namespace braid {

using at::Tensor;

struct LatentShape {
  std::int64_t channels, height, width;  // unpacked; height and width even
  std::int64_t num_tokens() const { return (height / 2) * (width / 2); }
};

// The generator that torch.Generator("cpu").manual_seed(seed) is.
at::Generator generator_of(std::uint64_t seed);

// Standard normal [B Z H W], picture b from generators[b], drawn on the CPU and in `dtype`, as the
// reference draws it. Equal to torch.randn bit for bit.
Tensor draw_noise(std::span<const at::Generator> generators, LatentShape shape,
                  at::ScalarType dtype);

Tensor pack(const Tensor& latents_BZHW);                     // -> [B N 4Z], 2 x 2 patches
Tensor unpack(const Tensor& tokens_BNC, LatentShape shape);  // -> [B Z H W]

// Positions [N 3] of the packed tokens: 0, row, column. float32.
Tensor position_ids(LatentShape shape, at::Device device);

}  // namespace braid
