// Prompts, and what a model's text encoders make of them.
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
  std::string text, second;  // the second is for the second text encoder, where there are two
  std::vector<Tensor> pictures_13HW = {};  // references, -1 to 1; for encoders that look at them
  // What an encoder made of these. The prompts of a request have it in common: the first fills it.
  std::shared_ptr<std::any> seen = {};
};

// Embedded prompts. A family without one of these leaves it undefined.
struct Condition {
  Tensor text_BTC, pooled_BC;
};

// A picture [1 3 H W], -1 .. 1, as text behind the prompt's: [1 L C].
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
  // A batch of one. Throws InputError for text that is not UTF-8; `warn` hears of cut text.
  virtual Condition encode(const Prompt& prompt, int max_sequence_length,
                           const Warn& warn) const = 0;
};

}  // namespace braid
