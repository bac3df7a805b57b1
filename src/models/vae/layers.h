// The layers of an AutoencoderKL. Images are [B C H W].
#pragma once

#include <optional>
#include <vector>

#include "models/vae/config.h"
#include "nn/attention.h"
#include "nn/linear.h"
#include "ops/image.h"

namespace braid {

struct ConvShape {
  std::int64_t in, out;
  std::int64_t kernel = 3, stride = 1, padding = 1;
};

class GroupNorm {
 public:
  GroupNorm(const Weights& w, std::int64_t channels, std::int64_t groups);
  Tensor operator()(const Tensor& x_BC) const;  // any dims after the channels
  const GroupNormParts& parts() const { return parts_; }

 private:
  GroupNormParts parts_;
};

class Conv2d {
 public:
  Conv2d(const Weights& w, ConvShape shape);
  Tensor operator()(const Tensor& x) const;
  Tensor of_doubled(const Tensor& x) const;  // upsamples x to twice its width and height first
  Tensor halving(const Tensor& x) const;     // pads x on the right and below; stride 2
  Tensor of_normed(Tensor x, const GroupNorm& norm) const;  // silu(norm(x))
  Tensor of_normed(Tensor x, const GroupNorm& norm, const ImageResidual& residual) const;

 private:
  Convolution conv_;
  Page page_;
};

// x + conv(silu(norm(conv(silu(norm(x)))))); a 1x1 convolution on the shortcut if widths differ.
class ResnetBlock {
 public:
  ResnetBlock(const Weights& w, std::int64_t in, std::int64_t out, std::int64_t groups);
  Tensor operator()(const Tensor& x) const;
  Tensor in_place(const Tensor& x) const;  // the result may take the memory of x

 private:
  Tensor apply(const Tensor& x, ImageResidual::Memory of_x) const;

  GroupNorm norm1_, norm2_;
  Conv2d conv1_, conv2_;
  std::optional<Conv2d> shortcut_;
};

// One head over all pixels, residual.
class PixelAttention {
 public:
  PixelAttention(const Weights& w, std::int64_t channels, std::int64_t groups);
  Tensor operator()(const Tensor& x) const;

 private:
  GroupNorm norm_;
  Linear qkv_, proj_;
};

// The coarsest level: resnet, attention if the config has it, resnet.
class MidBlock {
 public:
  MidBlock(const Weights& w, std::int64_t channels, const VaeConfig& config);
  Tensor operator()(const Tensor& x) const;

 private:
  ResnetBlock first_;
  std::optional<PixelAttention> attention_;
  ResnetBlock second_;
};

// (x - mean) / sqrt(variance + eps) per channel with stored statistics (Ioffe and Szegedy, 2015),
// and the inverse.
class StoredNorm {
 public:
  StoredNorm(const Weights& w, std::int64_t channels, double eps);
  Tensor operator()(const Tensor& x_BCHW) const;
  Tensor undo(const Tensor& x_BCHW) const;

 private:
  struct Statistics {
    Tensor mean_C11, deviation_C11;
  };
  Statistics statistics(at::ScalarType dtype) const;

  Tensor mean_C_, variance_C_;
  double eps_;
};

std::vector<ResnetBlock> load_resnets(const Weights& w, std::int64_t in, std::int64_t out,
                                      std::int64_t count, std::int64_t groups);

}  // namespace braid
