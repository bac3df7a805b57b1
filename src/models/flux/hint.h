// The input layers of XLabs' ControlNets: convolutions over a picture's pixels instead of the
// autoencoder (diffusers' ControlNetConditioningEmbedding).
#pragma once

#include <vector>

#include "models/vae/layers.h"

namespace braid {

class PictureHint {
 public:
  static constexpr std::int64_t kHalvings = 3;  // the reference's, whatever a config says
  static constexpr std::int64_t kPixelsOfToken = 2 << kHalvings;  // of its side

  PictureHint(const Weights& w, std::int64_t channels);
  Tensor operator()(const Tensor& picture_13HW) const;  // [1 N 4 channels], row by row

 private:
  Conv2d in_;
  std::vector<Conv2d> layers_;
  Conv2d out_;
};

}  // namespace braid
