// What a picture will look like, from its latents and without the decoder: each latent pixel's
// channels are mapped to the mean colour of the pixels that it stands for.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace braid {

using at::Tensor;

class LatentColors {
 public:
  // Fitted by least squares to what `decode` makes of four pictures of smooth noise: of latents
  // [1 Z h w], the decoder's inputs, pictures [1 3 s*h s*w] in -1 .. 1.
  LatentColors(std::int64_t channels, const std::function<Tensor(const Tensor& latents)>& decode);

  // [B Z h w] to [B 3 h w] in float32 on the CPU, about -1 .. 1.
  Tensor operator()(const Tensor& latents) const;

 private:
  Tensor colors_;  // [Z + 1, 3], the last row for a channel of ones
};

}  // namespace braid
