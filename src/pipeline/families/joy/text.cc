#include "pipeline/families/joy/text.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "base/request_error.h"
#include "pipeline/families/chat_tokens.h"
#include "pipeline/families/encoded_pictures.h"
#include "text/chat.h"
#include "text/tokenizer_files.h"

namespace braid {
namespace {

namespace fs = std::filesystem;

// Length of the system turn as the published tokenizer splits it; the transformer does not see it.
constexpr std::int64_t kSystemTokens = 34;
constexpr std::int64_t kLongestChat = 1 << 16;  // tokens

// The pipelines mark the places of references by this, and take a prompt's own for one more.
void check_no_picture_tag(const std::string& prompt) {
  require_field(
      "prompt", prompt.find("<image>\n") == prompt.npos,
      "the prompt marks the place of a picture, <image>: references are placed before it");
}

}  // namespace

// Prompts are read without pictures: how many tokens those have is not known before they are
// prepared.
std::vector<PromptReader> joy_prompt_readers(const JoyConfigs& configs) {
  const bool is_edit = configs.kind == JoyKind::kEdit;
  return {{.tokenizer = is_edit ? "tokenizer" : configs.tokenizer,
           .chat = [](const std::string& prompt) { return joy_chat(prompt, 0); },
           .unseen = kSystemTokens,
           .most = is_edit ? configs.max_plain_tokens : 0,
           .keeps = is_edit ? PromptReader::Keeps::kBeginning : PromptReader::Keeps::kEnd}};
}

JoyText::JoyText(const JoyConfigs& configs, const fs::path& folder, at::Device device,
                 Paged<Qwen3Vl> model)
    : kind_(configs.kind),
      max_plain_tokens_(configs.max_plain_tokens),
      device_(device),
      tokenizer_(load_tokenizer(folder / configs.tokenizer)),
      plain_(tokenizer_),
      process_(folder / "processor", configs.text.vision.form()),
      model_(std::move(model)) {
  check_chat_tokens(*tokenizer_, kTurnsWithPictures, folder / configs.tokenizer);
  check_image_token(*tokenizer_, configs.text.image_token, folder / configs.tokenizer);
  if (kind_ == JoyKind::kPlus || configs.tokenizer == "tokenizer") return;
  plain_ = load_tokenizer(folder / "tokenizer");
  check_chat_tokens(*plain_, kTurns, folder / "tokenizer");
}

bool JoyText::is_plain(const Prompt& prompt) const {
  return kind_ == JoyKind::kEdit && prompt.pictures_13HW.empty();
}

// Edit without a picture reads only the beginning of a long prompt; everything else is read whole.
std::vector<std::int64_t> JoyText::ids_of(const Prompt& prompt, const Warn& warn) const {
  const auto chat = joy_chat(prompt.text, prompt.pictures_13HW.size());
  const bool plain = is_plain(prompt);
  if (!plain) check_no_picture_tag(prompt.text);
  if (!prompt.pictures_13HW.empty()) check_no_video(prompt.text);
  const auto most = plain ? max_plain_tokens_ + kSystemTokens : kLongestChat;
  const auto encoding = (plain ? plain_ : tokenizer_)->encode(chat, most);
  if (encoding.truncated) warn_of_cut(most - kSystemTokens, warn);
  const auto first = encoding.ids.begin() + encoding.begin;
  return {first, first + encoding.length};
}

// The system turn is dropped. Of what is too long, Edit without a picture keeps the beginning, all
// else the end.
Condition JoyText::encode(const Prompt& prompt, int max_sequence_length, const Warn& warn) const {
  const auto ids = ids_of(prompt, warn);
  const auto in_use = model_.page.use();
  const auto states =
      model_.network(ids, encoded_pictures(prompt, process_, model_.network, device_))
          .slice(1, kSystemTokens);
  const auto over = states.size(1) - max_sequence_length;
  if (over <= 0) return {.text_BTC = states.contiguous(), .pooled_BC = {}};
  const bool keeps_begin = is_plain(prompt);
  if (warn)
    warn(text_of("of ", states.size(1), " tokens of the prompt and its pictures the transformer ",
                 "sees the ", keeps_begin ? "first " : "last ", max_sequence_length));
  return {.text_BTC = states.narrow(1, keeps_begin ? 0 : over, max_sequence_length).contiguous(),
          .pooled_BC = {}};
}

}  // namespace braid
