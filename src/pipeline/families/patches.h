// Families whose tokens are square patches of latents, the channels of a latent one after another.
//
// Shape letters: B batch, Z latent channels, H W latent rows and columns, P latents of a patch's
// side (2 unless said), N = (H/P)(W/P) tokens.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

struct PatchGrid {
  std::int64_t rows, columns;
};

constexpr std::int64_t kUsualPatch = 2;

Tensor pack_patches(const Tensor& latents_BZHW, std::int64_t patch = kUsualPatch);  // -> [B N PPZ]
Tensor unpack_patches(const Tensor& tokens_BNC, PatchGrid grid,
                      std::int64_t patch = kUsualPatch);  // -> [B Z H W]

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
  virtual std::int64_t patch() const { return kUsualPatch; }
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
