// Prompts as the turns of a chat, spelled as the chat templates of published text encoders spell
// them. Marks such as <|im_start|> are tokens of their own once a tokenizer reads them. What it
// adds itself, as Mistral's <s>, is left to it.
#pragma once

#include <string>
#include <string_view>

namespace braid {

// Whether the assistant may think before it answers; if not, its turn begins with a thought that
// is empty.
enum class Thinking { kAllowed, kSkipped };

// A user's turn, and the beginning of the assistant's: Qwen3 (Yang et al., 2025).
std::string qwen3_chat(std::string_view user, Thinking thinking);

// A system's turn and a user's: Mistral Small 3.
std::string mistral_chat(std::string_view system, std::string_view user);

// A user's turn, in front of which stand `num_pictures`, each as one <|image_pad|> between its
// ends: what JoyAI-Image-Edit was trained with.
std::string joy_chat(std::string_view user, std::size_t num_pictures);

// What FLUX.2 was trained with (black-forest-labs/flux2, system_messages.py).
inline constexpr std::string_view kFlux2SystemMessage =
    "You are an AI that reasons about image descriptions. You give structured responses focusing "
    "on object relationships, object\nattribution and actions without speculation.";

}  // namespace braid
