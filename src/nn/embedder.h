// Embeds a timestep, a guidance scale or a vector for a denoiser.
#pragma once

#include "nn/linear.h"

namespace braid {

// t_B -> [B width]: cosines, then sines, of t * 10000^(-2k/width), float32 (Vaswani et al., 2017).
// These angles are multiplied by `scale`.
Tensor sinusoidal_embedding(const Tensor& t_B, std::int64_t width, double scale = 1);

// Two dense layers with SiLU between them.
class Embedder {
 public:
  Embedder(Linear in, Linear out) : in_(std::move(in)), out_(std::move(out)) {}
  Tensor operator()(const Tensor& x_BC) const;

 private:
  Linear in_, out_;
};

}  // namespace braid
