// The layers before and after the blocks of a Krea 2 transformer.
//
// Shape letters: B batch, S steps, I image tokens, C hidden width, M modulations.
#pragma once

#include "models/krea2/blocks.h"
#include "nn/predict.h"

namespace braid {

// What a step's timestep becomes: six vectors that all blocks share, and the last layer's.
constexpr std::int64_t kKrea2BlockVectors = 6, kKrea2Vectors = kKrea2BlockVectors + 1;

class Krea2Inputs {
 public:
  Krea2Inputs(const Weights& w, const Krea2Config& config);
  Tensor image(const DenoiserInput& in) const;      // [B I C]
  Tensor condition(const DenoiserInput& in) const;  // the vectors [S M], M = 7 C

 private:
  Linear image_in_, time_in_, time_out_, vectors_;
  std::int64_t sinusoid_;
  at::ScalarType dtype_;
};

class Krea2Output {
 public:
  Krea2Output(const Weights& w, const Krea2Config& config);
  // -> velocity [B I C'], from the last vector
  Tensor operator()(const Tensor& image_BIC, const Tensor& vector_BC) const;

 private:
  Tensor table_2C_, norm_C_;
  Linear out_;
  double norm_eps_;
};

}  // namespace braid
