// Has a prompt rewritten by a chat server, in more words and as an image model was trained to read
// it.
#pragma once

#include <memory>

#include "braid/inputs.h"
#include "net/enhancer/answer_store.h"
#include "net/enhancer/chat.h"
#include "net/enhancer/enhanced_prompt.h"
#include "net/enhancer/system_prompts.h"

namespace braid::net {

// What is enhanced.
struct PlainPrompt {
  std::string text = {};
  std::string boxes = {};                    // of the user, as Request::boxes; empty: none
  std::vector<const Pixels*> pictures = {};  // those of the request, in order
};

class Enhancer {
 public:
  Enhancer(ChatServer server, SystemPrompts prompts, AnswerStore answers);

  // Asks, or answers as before if all that would be sent is the same: server, model, prompts and
  // pictures. The caller keeps answers that it can draw. Any thread may call it.
  // Throws EnhancerFailure; InputError for boxes and pictures that cannot be sent; Cancelled.
  EnhancedPrompt enhance(const PlainPrompt& prompt, const std::stop_token& stop) const;

 private:
  Json question_of(const PlainPrompt& prompt, const std::string& locked) const;
  EnhancedPrompt read(const std::string& answer, const PlainPrompt& prompt,
                      const std::string& locked) const;

  const ChatServer server_;
  const SystemPrompts prompts_;
  const AnswerStore answers_;
};

}  // namespace braid::net
