// Previews a picture from its latents without the decoder: maps each latent pixel's channels to the
// mean colour of the pixels it stands for.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>

namespace braid {

using at::Tensor;

class LatentColors {
 public:
  // Fitted by least squares to the output of `decode` for four pictures of smooth noise. `decode`
  // maps the decoder's inputs [1 Z h w] to pictures [1 3 s*h s*w] in -1 .. 1.
  LatentColors(std::int64_t channels, const std::function<Tensor(const Tensor& latents)>& decode);

  // Maps [B Z h w] to [B 3 h w] in float32 on the CPU, about -1 .. 1.
  Tensor operator()(const Tensor& latents) const;

 private:
  Tensor colors_;  // [Z + 1, 3], the last row for a channel of ones
};

}  // namespace braid
