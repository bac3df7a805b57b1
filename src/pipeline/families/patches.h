// Families whose tokens are patches of 2 x 2 latents, the channels of a latent one after another.
//
// Shape letters: B batch, Z latent channels, H W latent rows and columns, N = (H/2)(W/2) tokens.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

struct PatchGrid {
  std::int64_t rows, columns;
};

Tensor pack_patches(const Tensor& latents_BZHW);                  // -> [B N 4Z]
Tensor unpack_patches(const Tensor& tokens_BNC, PatchGrid grid);  // -> [B Z H W]

// Positions [N 3] of the packed tokens: `first`, row, column. float32.
Tensor patch_positions(PatchGrid grid, at::Device device, std::int64_t first = 0);

// The drawn picture is at 0 on the first axis; references, if the family uses them, at 1, 2, ...
class PatchFamily : public Family {
 public:
  using Family::Family;

  std::int64_t num_tokens(PictureSize size) const override;
  std::vector<std::int64_t> latent_shape(PictureSize size) const override;
  Tensor pack(const Tensor& latents_BZHW) const override;
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override;
  Tokens reference(const Tensor& latents_1ZHW, int number) const override;

 protected:
  PatchGrid grid(PictureSize size) const;
};

// Whose autoencoder packs the patches: each position of its latents [B 4Z H/2 W/2] is a token.
class PackedFamily : public PatchFamily {
 public:
  using PatchFamily::PatchFamily;

  std::vector<std::int64_t> latent_shape(PictureSize size) const override;
  Tensor pack(const Tensor& latents_BCHW) const override;
  Tensor unpack(const Tensor& tokens_BNC, PictureSize size) const override;
};

}  // namespace braid
