// The pictures of a request in the form the autoencoder and the denoiser expect.
//
// Shape letters: H W pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include "image/mask.h"
#include "pipeline/families/family.h"
#include "pipeline/request/settings.h"

namespace braid {

// Pastes what is drawn back into the region of the initial picture that it was cut from.
struct PutBack {
  Region region;
  Pixels picture, mask;
  Picture operator()(Picture drawn) const;
};

// float32, on the CPU; undefined or empty if the request has none.
struct PreparedPictures {
  Tensor init_13HW;                     // -1 to 1, of the request's size
  std::vector<Tensor> controls_13HW;    // the same
  Tensor mask_11HW;                     // 0 or 1, of the request's size; 1 is drawn
  std::vector<Tensor> references_13HW;  // -1 to 1, each of its own size; for text encoders
  std::vector<Tensor> references_1CHW;  // with alpha if the autoencoder has it, else the same
  std::optional<PutBack> put_back;      // if only a part of a picture is drawn
};

// Resizes as diffusers' VaeImageProcessor does; `warn` reports each resized picture.
PreparedPictures prepare_pictures(const PicturesIn& pictures, const Settings& settings,
                                  const PicturesTaken& taken, const Warn& warn);

}  // namespace braid
