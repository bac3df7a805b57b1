#include "text/chat.h"

namespace braid {

std::string qwen3_chat(std::string_view user, Thinking thinking) {
  std::string chat = "<|im_start|>user\n";
  chat += user;
  chat += "<|im_end|>\n<|im_start|>assistant\n";
  if (thinking == Thinking::kSkipped) chat += "<think>\n\n</think>\n\n";
  return chat;
}

std::string mistral_chat(std::string_view system, std::string_view user) {
  std::string chat = "[SYSTEM_PROMPT]";
  chat += system;
  chat += "[/SYSTEM_PROMPT][INST]";
  chat += user;
  chat += "[/INST]";
  return chat;
}

}  // namespace braid
