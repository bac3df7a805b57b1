// The text encoders of Qwen-Image: they read a chat, those of Edit one that contains pictures.
#pragma once

#include "models/qwen25_vl/model.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/picture_processor.h"
#include "pipeline/families/qwen_image/qwen_image.h"
#include "text/tokenizer.h"

namespace braid {

std::vector<PromptReader> qwen_image_prompt_readers(const QwenImageConfigs& configs);

// The text encoder of Qwen-Image and Layered, which sees no pictures.
class QwenImageText : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  QwenImageText(const std::filesystem::path& tokenizer, at::Device device, Paged<CausalLm> model);

  // The tokens of the prompt and of the end of its chat.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  Paged<CausalLm> model_;
};

class QwenImageEditText : public TextEncoders {
 public:
  // `folder` is the model's. Throws InputError if the tokenizer lacks a token of the chat.
  QwenImageEditText(const QwenImageConfigs& configs, const std::filesystem::path& folder,
                    at::Device device, Paged<Qwen25Vl> model);

  // The tokens of the pictures, the prompt and the end of its chat.
  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  QwenImageKind kind_;
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  PictureProcessor process_;
  Paged<Qwen25Vl> model_;
};

}  // namespace braid
