// The encoders of a model's prompts and references, loaded on one rank.
#pragma once

#include "pipeline/loaded/loading.h"

namespace braid {

class Encoders {
 public:
  // Text encoders on the first rank or, shared, on its tensor parallel ranks.
  Encoders(const Loading& loading, const Warn& warn);

  // Collective: the ranks that hold the encoders encode, or the first one remembers; all ranks get
  // the result. A batch of one.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  // References as text behind a prompt, from pictures in sizes of their own: [1 L C] each.
  // Collective: the first rank reads the encoder, and releases it.
  std::vector<Tensor> embed_pictures(const std::vector<Tensor>& pictures) const;

 private:
  Condition encode_now(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  Condition encode_or_recall(const Prompt& prompt, int max_sequence_length, const Warn& warn) const;
  EncodedKey key_of(const Prompt& prompt, int max_sequence_length) const;

  std::shared_ptr<const ModelFiles> files_;
  std::shared_ptr<const Family> family_;
  std::shared_ptr<const ModelWeights> weights_;
  Mesh mesh_;
  PictureEncoding encoding_;
  at::TensorOptions like_;                    // dtype and device of what they make
  std::unique_ptr<const TextEncoders> text_;  // null: on other ranks
};

}  // namespace braid
