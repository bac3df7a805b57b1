// The autoencoder between pictures and latents (Kingma and Welling, 2014; diffusers' AutoencoderKL,
// AutoencoderKLFlux2, AutoencoderKLWan and AutoencoderKLQwenImage21), written for one device.
//
// Pictures are [B 3 H W], with alpha [B 4 H W], in -1 .. 1; latents [B Z H/8 W/8] for four levels.
#pragma once

#include "models/vae/layers.h"
#include "models/vae/names.h"
#include "models/vae/residual_wan.h"

namespace braid {

class VaeEncoder {
 public:
  VaeEncoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& picture) const;  // moments [B 2Z h w]: means, log-variances

 private:
  struct Level {
    std::vector<ResnetBlock> resnets;
    std::optional<Conv2d> downsample;
  };
  Conv2d in_;
  std::vector<Level> levels_;
  MidBlock mid_;
  GroupNorm norm_;
  Conv2d out_;
};

class VaeDecoder {
 public:
  VaeDecoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& latents) const;

 private:
  struct Level {
    std::vector<ResnetBlock> resnets;
    std::optional<Conv2d> upsample;
  };
  Conv2d in_;
  MidBlock mid_;
  std::vector<Level> levels_;
  GroupNorm norm_;
  Conv2d out_;
};

enum class Tiles { kNever, kWhereLarger };  // than the config's sample_size

struct VaeMoments {
  Tensor mean, logvar;  // [B Z h w]; logvar within -30 .. 20
};

class Vae {
 public:
  // Tensors of an unwanted half are left alone; its functions throw.
  enum class Parts { kEncoder, kDecoder, kBoth };
  Vae(const VaeConfig& config, const Weights& w, Parts parts = Parts::kBoth);

  // Takes the decoder's latents: see `to_decoder`. Wan's pictures are not yet clamped to -1 .. 1.
  // Batches are decoded one picture at a time, which bounds memory and changes no bit.
  // `before_tile` is called before each tile or picture, and may throw.
  Tensor decode(
      const Tensor& latents, Tiles tiles, const std::function<void()>& before_tile = [] {}) const;
  // The three steps of decode() for one picture, for callers that divide the second: cut the
  // latents into tiles (or keep them whole), decode a tile, join the results.
  std::vector<Tensor> tiles_of(const Tensor& latents, Tiles tiles) const;
  Tensor decode_tile(const Tensor& latents) const;
  Tensor join_tiles(const Tensor& latents, std::vector<Tensor> decoded) const;
  // Batches and `before_tile` as in decode().
  VaeMoments encode(
      const Tensor& pictures, Tiles tiles, const std::function<void()>& before_tile = [] {}) const;

  // Convert between the denoiser's latents and the autoencoder's. FLUX.2's denoiser packs them as
  // [B 4Z H/16 W/16]: channel 4z + 2y + x holds value (y, x) of each 2 x 2 patch of channel z.
  Tensor to_decoder(const Tensor& latents) const;
  Tensor from_encoder(const Tensor& latents) const;

  const VaeConfig& config() const { return config_; }

 private:
  Tensor encode_tile(const Tensor& picture) const;
  void load_decoder(const Weights& w);
  void load_encoder(const Weights& w);

  VaeConfig config_;
  std::optional<VaeDecoder> decoder_;
  std::optional<VaeEncoder> encoder_;
  std::optional<Conv2d> quant_, post_quant_;
  std::optional<WanDecoder> wan_decoder_;  // replaces the members above, depending on the config
  std::optional<WanEncoder> wan_encoder_;
  std::optional<ResidualWanDecoder> residual_decoder_;
  std::optional<ResidualWanEncoder> residual_encoder_;
  std::optional<StoredNorm> packed_norm_;
};

// Scales latents of an AutoencoderKL or AutoencoderKLWan encoder for the denoiser.
Tensor scaled_latents(const VaeConfig& config, const Tensor& latents);

// The same for pictures that ControlNets follow. As in QwenImageControlNetPipeline, the means and
// deviations of an AutoencoderKLWan stay float32, and only the result is rounded.
Tensor scaled_for_nets(const VaeConfig& config, const Tensor& latents);

}  // namespace braid
