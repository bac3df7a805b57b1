// Prompts, and their embeddings by a model's text encoders.
//
// Shape letters: B batch, T text tokens, C widths.
#pragma once

#include <ATen/core/Tensor.h>

#include <any>
#include <functional>
#include <memory>
#include <string>
#include <vector>

namespace braid {

using at::Tensor;

struct Prompt {
  std::string text, second;                // the second is for the second text encoder, if any
  std::vector<Tensor> pictures_13HW = {};  // references, -1 to 1; for encoders that look at them
  // An encoder's result for these, shared by the prompts of a request: the first one fills it.
  std::shared_ptr<std::any> seen = {};
};

// Embedded prompts. A family that lacks one of them leaves it undefined.
struct Condition {
  Tensor text_BTC, pooled_BC;
  // int64 [R], for models that see references within the text: how many of its tokens stand before
  // each. The same for all prompts of a request.
  Tensor places_R = {};
};

// A picture [1 3 H W], -1 .. 1, as text to append to the prompt: [1 L C].
using EmbedPicture = std::function<Tensor(const Tensor&)>;

struct EmbeddedPictures {
  std::vector<Tensor> embedded;
  std::vector<double> scales;
};

using Warn = std::function<void(const std::string&)>;

// The text encoders of a model, loaded.
class TextEncoders {
 public:
  virtual ~TextEncoders() = default;
  // A batch of one. Throws InputError for text that is not UTF-8; `warn` reports truncated text.
  virtual Condition encode(const Prompt& prompt, int max_sequence_length,
                           const Warn& warn) const = 0;
};

}  // namespace braid
