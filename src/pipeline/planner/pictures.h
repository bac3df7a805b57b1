// What pictures that a request brings take.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

struct PlannedPictures {
  std::int64_t encoded_pixels = 0;    // of the largest that the autoencoder encodes
  std::int64_t reference_tokens = 0;  // of all that the model looks at
  PicturesTaken::Seen seen = PicturesTaken::Seen::kInEveryStep;
};

// `size` is that of the picture that is drawn. They are those that the family takes.
PlannedPictures planned_pictures(const Family& family, const PicturesIn& in, PictureSize size);

// Of the autoencoder's encoder, with its biases and norms.
std::int64_t encoder_parameters(const VaeConfig& config);

}  // namespace braid
