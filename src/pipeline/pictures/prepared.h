// The pictures of a request as the autoencoder and the denoiser want them.
//
// Shape letters: H W pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include "image/mask.h"
#include "pipeline/families/family.h"
#include "pipeline/settings.h"

namespace braid {

// What is drawn goes back into the region of the initial picture that it was cut out of.
struct PutBack {
  Region region;
  Pixels picture, mask;
  Picture operator()(Picture drawn) const;
};

// float32, on the CPU; undefined or empty where the request has none.
struct PreparedPictures {
  Tensor init_13HW;                     // -1 to 1, of the request's size
  std::vector<Tensor> controls_13HW;    // the same
  Tensor mask_11HW;                     // 0 or 1, of the request's size; 1 is drawn
  std::vector<Tensor> references_13HW;  // -1 to 1, each of a size of its own
  std::optional<PutBack> put_back;      // where a part of a picture is drawn alone
};

// Resized as diffusers' VaeImageProcessor does; `warn` hears of each picture that is.
PreparedPictures prepare_pictures(const PicturesIn& pictures, PictureSize size,
                                  const PicturesTaken& taken, const Warn& warn);

}  // namespace braid
