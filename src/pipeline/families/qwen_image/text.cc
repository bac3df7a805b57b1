#include "pipeline/families/qwen_image/text.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/encoded_pictures.h"
#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Tokens of the system turn and the beginning of the user's, as the published tokenizer splits
// them; those of Edit with the first picture's mark. The transformer does not see them.
constexpr int kSystemTokens = 34, kEditSystemTokens = 64;
constexpr std::int64_t kLongestBeginning = 1 << 15;  // tokens of a chat before its prompt
constexpr std::int64_t kLongestPrompt = 1024;        // that the reference's tokenizer reads

std::string plain_chat(const std::string& prompt) {
  return description_chat(prompt) + std::string(kAssistantTurn);
}

std::string edit_chat(QwenImageKind kind, const std::string& prompt, std::size_t num_pictures) {
  return qwen_image_edit_chat(
      prompt, num_pictures,
      kind == QwenImageKind::kEdit ? PictureNames::kNone : PictureNames::kNumbered);
}

// The first `most` tokens of a chat, of which the tokenizer reads at most `longest` at the side
// that it keeps. A token sees only those before it, so that it does not matter whether tokens or,
// as in the reference, their states are cut.
std::vector<std::int64_t> ids_of(const Tokenizer& tokenizer, const std::string& chat,
                                 std::int64_t most, std::int64_t longest, const Warn& warn) {
  const auto read = tokenizer.encode(chat, std::max(most, longest));
  if (read.truncated || read.length > most)
    warn_of_cut(most, warn, "the text encoder reads with its chat");
  const auto first = read.ids.begin() + read.begin;
  return {first, first + std::min(most, read.length)};
}

// How many tokens of a chat of Edit stand before its prompt: all pictures are among them.
std::int64_t tokens_before_prompt(const Tokenizer& tokenizer, QwenImageKind kind,
                                  std::size_t num_pictures) {
  const auto chat = edit_chat(kind, "", num_pictures);
  return tokenizer.encode(chat.substr(0, chat.rfind("<|im_end|>")), kLongestBeginning).length;
}

// A picture counts as one token towards the longest prompt. The reference's pipelines of Edit draw
// with any length, which cuts nothing there, so that pictures are read whatever it is.
std::vector<std::int64_t> edit_ids_of(const Tokenizer& tokenizer, QwenImageKind kind,
                                      const Prompt& prompt, int max_sequence_length,
                                      const Warn& warn) {
  check_no_video(prompt.text);
  const auto num_pictures = prompt.pictures_13HW.size();
  const auto chat = edit_chat(kind, prompt.text, num_pictures);
  const auto before = tokens_before_prompt(tokenizer, kind, num_pictures);
  const auto least = before + 1 - kEditSystemTokens;
  if (max_sequence_length >= least)
    return ids_of(tokenizer, chat, kEditSystemTokens + max_sequence_length, kLongestBeginning,
                  warn);
  if (warn)
    warn(text_of(
        "`max_sequence_length` should be at least ", least,
        " for the text encoder to read any tokens of the prompt behind its pictures, it is ",
        max_sequence_length, ": the prompt is ignored"));
  return ids_of(tokenizer, chat, before, kLongestBeginning, {});
}

}  // namespace

// Those of Edit without pictures: how many tokens these have is not known before they are prepared.
std::vector<PromptReader> qwen_image_prompt_readers(const QwenImageConfigs& configs) {
  const auto kind = configs.kind;
  if (!reads_pictures(kind))
    return {{.tokenizer = "tokenizer", .chat = plain_chat, .unseen = kSystemTokens}};
  return {{.tokenizer = configs.tokenizer,
           .chat = [=](const std::string& prompt) { return edit_chat(kind, prompt, 0); },
           .unseen = kEditSystemTokens}};
}

QwenImageText::QwenImageText(const fs::path& tokenizer, at::Device device, Paged<CausalLm> model)
    : device_(device), tokenizer_(load_tokenizer(tokenizer)), model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurns, tokenizer);
}

Condition QwenImageText::encode(const Prompt& prompt, int max_sequence_length,
                                const Warn& warn) const {
  const auto ids = ids_of(*tokenizer_, plain_chat(prompt.text), kSystemTokens + max_sequence_length,
                          kSystemTokens + kLongestPrompt, warn);
  const auto ids_BL = at::tensor(ids, at::kLong).unsqueeze(0);
  const TextRun text{.begin = 0, .count = ids_BL.size(1)};
  const auto in_use = model_.page.use();
  const auto states = model_.network(ids_BL.to(device_), std::span(&text, 1), Pads::kSkipped);
  return {.text_BTC = states.slice(1, kSystemTokens).contiguous(), .pooled_BC = {}};
}

QwenImageEditText::QwenImageEditText(const QwenImageConfigs& configs, const fs::path& folder,
                                     at::Device device, Paged<Qwen25Vl> model)
    : kind_(configs.kind),
      device_(device),
      tokenizer_(load_tokenizer(folder / configs.tokenizer)),
      process_(folder / "processor", configs.text.vision.form(), PictureFilters::kPillow),
      model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurnsWithPictures, folder / configs.tokenizer);
  check_image_token(*tokenizer_, configs.text.image_token, folder / configs.tokenizer);
}

Condition QwenImageEditText::encode(const Prompt& prompt, int max_sequence_length,
                                    const Warn& warn) const {
  const auto ids = edit_ids_of(*tokenizer_, kind_, prompt, max_sequence_length, warn);
  const auto in_use = model_.page.use();
  const auto states =
      model_.network(ids, encoded_pictures(prompt, process_, model_.network, device_));
  return {.text_BTC = states.slice(1, kEditSystemTokens).contiguous(), .pooled_BC = {}};
}

}  // namespace braid
