// What a request's pictures cost.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

struct PlannedPictures {
  std::int64_t encoded_pixels = 0;  // of the largest picture the autoencoder encodes
  std::int64_t held_bytes = 0;      // of all pictures as they are given, which the caller keeps
  // Tokens of each picture that the model looks at; ranks split each run separately. References
  // seen once form one run.
  std::vector<std::int64_t> references = {};
  PicturesTaken::ReferenceUse reference_use = PicturesTaken::ReferenceUse::kInEveryStep;
  ReferenceCache cache = ReferenceCache::kAuto;
  std::int64_t tokens_behind_prompt = 0;

  std::int64_t reference_tokens() const;
};

// `size` is that of the drawn picture. The family must accept the pictures.
PlannedPictures planned_pictures(const Family& family, const PicturesIn& in, PictureSize size);

// Parameters of the autoencoder's encoder, with its biases and norms.
std::int64_t encoder_parameters(const VaeConfig& config);

}  // namespace braid
