// What a chat with a language model is made of, and whether a model's directory agrees.
#pragma once

#include "pipeline/families/family.h"
#include "text/tokenizer.h"

namespace braid {

struct ChatTokens {
  std::vector<std::string> tokens;         // each is a token of its own
  std::vector<std::string> template_says;  // strings in the source of a template that makes it
};

// Throws InputError naming the folder and the first token that its tokenizer does not have.
void check_chat_tokens(const Tokenizer& tokenizer, const ChatTokens& chat,
                       const std::filesystem::path& folder);

// Chats are spelled as the published templates do. A folder whose own template, in
// chat_template.jinja or tokenizer_config.json, lacks what these say is told of.
void warn_of_other_template(const std::filesystem::path& folder, const ChatTokens& chat,
                            const Warn& warn);

}  // namespace braid
