// What pictures that a request brings take.
#pragma once

#include "pipeline/families/family.h"

namespace braid {

struct PlannedPictures {
  std::int64_t encoded_pixels = 0;  // of the largest that the autoencoder encodes
  // Tokens of each picture that the model looks at; ranks share each run by itself. Those that are
  // seen once are one run.
  std::vector<std::int64_t> references = {};
  PicturesTaken::Seen seen = PicturesTaken::Seen::kInEveryStep;
  std::int64_t tokens_behind_prompt = 0;

  std::int64_t reference_tokens() const;
};

// `size` is that of the picture that is drawn. They are those that the family takes.
PlannedPictures planned_pictures(const Family& family, const PicturesIn& in, PictureSize size);

// Of the autoencoder's encoder, with its biases and norms.
std::int64_t encoder_parameters(const VaeConfig& config);

}  // namespace braid
