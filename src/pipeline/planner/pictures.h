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
  // Tokens that references become beside those of the prompt: as text that the transformer sees,
  // and where the text encoders read it.
  std::int64_t tokens_behind_prompt = 0, tokens_read = 0;

  std::int64_t reference_tokens() const;
};

// `size` is that of the drawn picture. The family must accept the pictures; of those that it needs
// and that are not given, some of that size are planned for.
PlannedPictures planned_pictures(const Family& family, const PicturesIn& in, PictureSize size);

// The tokens of references that stand in the text, as above. `size` is that of the drawn picture.
struct TextOfPictures {
  std::int64_t seen = 0, read = 0;
};
TextOfPictures text_of_pictures(const PicturesIn& in, const PicturesTaken& taken, PictureSize size);

// Parameters of the autoencoder's encoder, with its biases and norms.
std::int64_t encoder_parameters(const VaeConfig& config);

}  // namespace braid
