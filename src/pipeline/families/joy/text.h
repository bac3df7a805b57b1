// The text encoder of JoyAI-Image-Edit: it reads a chat that contains the pictures to edit.
#pragma once

#include "models/qwen3_vl/model.h"
#include "pipeline/families/joy/joy.h"
#include "pipeline/families/paged.h"
#include "text/tokenizer.h"

namespace braid {

// How the image processor's folder says pictures are normalised.
struct PictureNorm {
  std::vector<double> mean, deviation;     // of red, green and blue, 0 to 1
  std::int64_t least_pixels, most_pixels;  // others are resized by the reference
};

// From preprocessor_config.json or processor_config.json. Throws InputError naming the field, also
// if its patches differ from the vision tower's.
PictureNorm read_picture_norm(const std::filesystem::path& processor, const VisionConfig& vision);

class JoyText : public TextEncoders {
 public:
  // Throws InputError if the tokenizer lacks a token of the chat.
  JoyText(const JoyConfigs& configs, const std::filesystem::path& folder, at::Device device,
          Paged<Qwen3Vl> model);

  Condition encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const override;

 private:
  std::vector<std::int64_t> ids_of(const Prompt& prompt, const Warn& warn) const;
  Tensor normed(const Tensor& picture_13HW) const;  // [3 H W]
  SeenTogether see(const Prompt& prompt) const;

  JoyKind kind_;
  int max_plain_tokens_;
  at::Device device_;
  std::unique_ptr<const Tokenizer> tokenizer_;
  PictureNorm norm_;
  Paged<Qwen3Vl> model_;
};

}  // namespace braid
