// Qwen-Image-2.1's autoencoder (Qwen Team, 2026; diffusers' AutoencoderKLQwenImage21) for single
// pictures with alpha, [B 4 H W]. It is Wan 2.2's with convolutions over space alone. Beside each
// level runs a shortcut without weights, from which channels become pixels and the other way round.
#pragma once

#include "models/vae/wan.h"

namespace braid {

// How a level's shortcut changes its input. `temporal` ones also halve or double a video's frames;
// of a single picture, the frames before it are 0 where they are mixed, and not made where they
// would be.
struct WanShortcut {
  enum class Resample { kNone, kHalve, kDouble } resample = Resample::kNone;
  bool temporal = false;
  std::int64_t out = 0;  // channels

  // Each output channel is the mean of as many neighbouring ones, after blocks of 2 x 2 pixels (and
  // of two frames) became channels; or one of those that become pixels again.
  Tensor operator()(const Tensor& x) const;
};

// Whether sizes are such that a shortcut has equally many inputs for each output, or the reverse.
bool fits(const WanShortcut& shortcut, std::int64_t in);

struct ResidualLevel {
  std::vector<WanResnet> resnets;
  std::optional<Conv2d> resample;
  std::optional<WanShortcut> shortcut;
};

// The shortcuts of the levels, finest first in the encoder, coarsest first in the decoder.
std::vector<std::optional<WanShortcut>> encoder_shortcuts(const VaeConfig& config);
std::vector<std::optional<WanShortcut>> decoder_shortcuts(const VaeConfig& config);

class ResidualWanEncoder {
 public:
  // `w` is the whole autoencoder's scope; uses "encoder" and "quant_conv".
  ResidualWanEncoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& picture) const;  // moments [B 2Z h w]: means, log-variances

 private:
  WanConv in_;
  std::vector<ResidualLevel> levels_;
  WanMidBlock mid_;
  WanNorm norm_;
  WanConv out_, quant_;
};

class ResidualWanDecoder {
 public:
  // `w` is the whole autoencoder's scope; uses "decoder" and "post_quant_conv".
  ResidualWanDecoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& latents) const;

 private:
  WanConv post_quant_, in_;
  WanMidBlock mid_;
  std::vector<ResidualLevel> levels_;
  WanNorm norm_;
  WanConv out_;
};

}  // namespace braid
