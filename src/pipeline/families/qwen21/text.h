// The text encoder of Qwen-Image-2.1: it reads a chat that contains the references.
#pragma once

#include "models/qwen3_vl/model.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/picture_processor.h"
#include "pipeline/families/qwen21/qwen21.h"
#include "text/tokenizer.h"

namespace braid {

std::vector<PromptReader> qwen21_prompt_readers();

class Qwen21Text : public TextEncoders {
 public:
  // `folder` is the processor's, which has the tokenizer, too. Throws InputError if it lacks a
  // token of the chat; warns if its chat template is another.
  Qwen21Text(const Qwen3VlConfig& config, const std::filesystem::path& folder, at::Device device,
             Paged<Qwen3Vl> model, const Warn& warn);

  // The tokens of the chat behind its system turn, without those of pictures: the transformer sees
  // latents in their places.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  std::vector<std::int64_t> ids_of(const Prompt& prompt, int max_sequence_length,
                                   const Warn& warn) const;
  std::int64_t image_token_;
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  std::int64_t num_system_;  // tokens of the system turn
  PictureProcessor process_;
  Paged<Qwen3Vl> model_;
};

}  // namespace braid
