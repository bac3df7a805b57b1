// The tokens and template of a chat with a language model, and whether a model's directory agrees.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "pipeline/families/text_encoders.h"
#include "text/tokenizer.h"

namespace braid {

struct ChatTokens {
  std::vector<std::string> tokens;         // each is a single token
  std::vector<std::string> template_says;  // strings in the source of a matching template
  // Whether a matching template writes nothing that does not depend on the messages.
  bool template_is_of_messages = false;
};

// Turns as Qwen's tokenizers mark them; with pictures in them; and where a folder's template, which
// is not followed, should be one of such turns.
inline const ChatTokens kTurns{.tokens = {"<|im_start|>", "<|im_end|>"}, .template_says = {}};
inline const ChatTokens kTurnsWithPictures{
    .tokens = {"<|im_start|>", "<|im_end|>", "<|vision_start|>", "<|image_pad|>", "<|vision_end|>"},
    .template_says = {}};
inline const ChatTokens kTurnsOfTemplate{
    .tokens = kTurns.tokens,
    .template_says = {"<|im_start|>", "<|im_end|>", "assistant"},
    .template_is_of_messages = true};

// Throws InputError naming the folder and the first token missing from its tokenizer.
void check_chat_tokens(const Tokenizer& tokenizer, const ChatTokens& chat,
                       const std::filesystem::path& folder);

// The folder, in a model's, of the tokenizer that reads chats with pictures: the one beside the
// image processor, "processor", as in transformers; "tokenizer" if there is none.
std::string tokenizer_with_pictures(const std::filesystem::path& model);

// Throws InputError naming the folder unless its tokenizer's mark of a picture is `id`, the text
// encoder's 'image_token_id'.
void check_image_token(const Tokenizer& tokenizer, std::int64_t id,
                       const std::filesystem::path& folder);

// Throws InputError naming the folder unless its tokenizer pads on the right: the reference counts
// pads on the left among a chat's first tokens, which it drops.
void check_pads_on_the_right(const Tokenizer& tokenizer, const std::filesystem::path& folder);

// Throws InputError naming the folder unless its tokenizer puts `first` before a text and nothing
// else around it: the reference has it from the chat's template instead.
void check_begins_with(const Tokenizer& tokenizer, const std::string& first,
                       const std::filesystem::path& folder);

// Throws InputError if the prompt marks the place of a video: processors of pictures and videos
// refuse a mark for which they are given none.
void check_no_video(const std::string& prompt);

// Chats are spelled as in the published templates. Warns of a folder whose own template, in
// chat_template.jinja, chat_template.json or tokenizer_config.json, lacks `template_says` or writes
// more than it should. Other differences are not seen.
void warn_of_other_template(const std::filesystem::path& folder, const ChatTokens& chat,
                            const Warn& warn);

}  // namespace braid
