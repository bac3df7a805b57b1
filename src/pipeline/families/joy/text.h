// The text encoder of JoyAI-Image-Edit: it reads a chat that contains the pictures to edit.
#pragma once

#include "models/qwen3_vl/model.h"
#include "pipeline/families/joy/joy.h"
#include "pipeline/families/paged.h"
#include "pipeline/families/picture_processor.h"
#include "text/tokenizer.h"

namespace braid {

std::vector<PromptReader> joy_prompt_readers(const JoyConfigs& configs);

class JoyText : public TextEncoders {
 public:
  // `folder` is the model's. Throws InputError if a tokenizer lacks a token of the chat.
  JoyText(const JoyConfigs& configs, const std::filesystem::path& folder, at::Device device,
          Paged<Qwen3Vl> model);

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  std::vector<std::int64_t> ids_of(const Prompt& prompt, const Warn& warn) const;
  bool is_plain(const Prompt& prompt) const;

  JoyKind kind_;
  int max_plain_tokens_;
  at::Device device_;
  std::shared_ptr<const Tokenizer> tokenizer_;  // of chats with pictures, and all of Edit-Plus's
  std::shared_ptr<const Tokenizer> plain_;      // of Edit's without
  PictureProcessor process_;
  Paged<Qwen3Vl> model_;
};

}  // namespace braid
