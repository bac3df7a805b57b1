// A model's autoencoder on one rank: latents to pictures, and pictures to latents.
#pragma once

#include "models/vae/model.h"
#include "pipeline/families/paged.h"
#include "pipeline/loaded/loading.h"
#include "pipeline/sampling/latent_colors.h"

namespace braid {

// How a picture of this size is decoded and encoded (is_tiled()).
Tiles tiles_for(VaeTiling tiling, PictureSize size);

class Autoencoder {
 public:
  // The decoder, on all ranks or the first.
  explicit Autoencoder(const Loading& loading);

  // Collective: ranks that hold the decoder share tiles, or several pictures. `on_picture` is
  // called on the first rank, for each frame of each picture in order, with [1 C H W], -1..1; C is
  // 3, or 4 with alpha.
  void decode(const Tensor& tokens_BNC, PictureSize size, Tiles tiles,
              const std::function<void(const Tensor&)>& on_picture) const;

  // A rough preview of latents, on ranks that hold the decoder: [B 3 h w] in float32 on the CPU,
  // about -1 .. 1, one pixel per decoder input, of a clip's first frame. The first call decodes
  // noise.
  Tensor colors_of(const Tensor& tokens_BNC, PictureSize size) const;

  // Collective: the first rank reads the encoder, encodes pictures [1 C H W], -1..1, and releases
  // it; all ranks get the result.
  std::vector<VaeMoments> encode(const std::vector<Tensor>& pictures, Tiles tiles) const;
  // The means of these, as latents in the denoiser's form.
  std::vector<Tensor> encode_means(const std::vector<Tensor>& pictures, Tiles tiles) const;

 private:
  std::vector<Tensor> encode_with(
      const std::vector<Tensor>& pictures, const std::string& how,
      const std::function<Tensor(const Vae&, const Tensor&)>& encode) const;
  void decode_together(const Tensor& latents, Tiles tiles,
                       const std::function<void(const Tensor&)>& on_picture) const;

  std::shared_ptr<const ModelFiles> files_;
  std::shared_ptr<const Family> family_;
  Mesh mesh_;
  PictureEncoding encoding_;
  at::TensorOptions like_;  // dtype and device of its latents
  Group decoders_;          // the ranks that hold the decoder
  std::optional<Paged<Vae>> decoder_;
  mutable std::optional<LatentColors> colors_;  // fitted at the first preview
};

}  // namespace braid
