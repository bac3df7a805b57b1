// Wan 2.1's video autoencoder (Wan Team, 2025; diffusers' AutoencoderKLWan) for single pictures.
// Nothing precedes a video's first frame, so only the last time slice of a convolution meets data.
// Convolutions over time alone are never run. Pictures are [B C H W].
#pragma once

#include "models/vae/layers.h"

namespace braid {

// x / |x| * sqrt(C) * gamma, where |x| is the length over the channels.
class WanNorm {
 public:
  enum class Of { kVideo, kPicture };  // number of dims that gamma is stored with
  WanNorm(const Weights& w, std::int64_t channels, Of of = Of::kVideo);
  Tensor operator()(const Tensor& x) const;
  const PixelNormParts& parts() const { return parts_; }

 private:
  PixelNormParts parts_;
};

// Whether the kernels of convolutions are stored with an extent in time.
enum class WanTime { kStored, kNone };

// Keeps the last time slice [O I K K] of a weight that is stored as [O I K K K].
class WanConv {
 public:
  struct Shape {
    std::int64_t in, out, kernel = 3;
    WanTime time = WanTime::kStored;
  };
  WanConv(const Weights& scope, Shape shape);
  Tensor operator()(const Tensor& x) const;
  Tensor of_normed(Tensor x, const WanNorm& norm,  // silu(norm(x))
                   const std::optional<ImageResidual>& residual = {}) const;

 private:
  Convolution conv() const;

  Tensor weight_;  // [O I K K], but [O I K K K] in a page
  Tensor bias_O_;
  Page page_;
};

// x + conv(silu(norm(conv(silu(norm(x)))))); a 1x1 convolution on the shortcut if widths differ.
class WanResnet {
 public:
  WanResnet(const Weights& w, std::int64_t in, std::int64_t out, WanTime time);
  Tensor operator()(const Tensor& x) const;
  Tensor in_place(const Tensor& x) const;  // the result may take the memory of x

 private:
  Tensor apply(const Tensor& x, ImageResidual::Memory of_x) const;

  WanNorm norm1_, norm2_;
  WanConv conv1_, conv2_;
  std::optional<WanConv> shortcut_;
};

// One head over all pixels, residual.
class WanAttention {
 public:
  WanAttention(const Weights& w, std::int64_t channels);
  Tensor operator()(const Tensor& x) const;

 private:
  WanNorm norm_;
  Conv2d qkv_, proj_;
};

class WanMidBlock {
 public:
  WanMidBlock(const Weights& w, std::int64_t channels, WanTime time);
  Tensor operator()(const Tensor& x) const { return second_(attention_(first_(x))); }

 private:
  WanResnet first_;
  WanAttention attention_;
  WanResnet second_;
};

struct WanLevel {
  std::vector<WanResnet> resnets;
  std::optional<Conv2d> resample;
};

class WanEncoder {
 public:
  // `w` is the whole autoencoder's scope; uses "encoder" and "quant_conv".
  WanEncoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& picture) const;  // moments [B 2Z h w]: means, log-variances

 private:
  WanConv in_;
  std::vector<WanLevel> levels_;
  WanMidBlock mid_;
  WanNorm norm_;
  WanConv out_, quant_;
};

class WanDecoder {
 public:
  // `w` is the whole autoencoder's scope; uses "decoder" and "post_quant_conv".
  WanDecoder(const Weights& w, const VaeConfig& config);
  Tensor operator()(const Tensor& latents) const;

 private:
  WanConv post_quant_, in_;
  WanMidBlock mid_;
  std::vector<WanLevel> levels_;
  WanNorm norm_;
  WanConv out_;
};

}  // namespace braid
