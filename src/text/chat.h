// Prompts as chat turns, spelled as in the chat templates of published text encoders. Markers such
// as <|im_start|> become single tokens in a tokenizer. Tokens it adds itself, such as Mistral's
// <s>, are left to it.
#pragma once

#include <string>
#include <string_view>

namespace braid {

// Whether the assistant may think before it answers; if not, its turn begins with an empty thought.
enum class Thinking { kAllowed, kSkipped };

// Ends a user's turn and begins the assistant's.
inline constexpr std::string_view kAssistantTurn = "<|im_end|>\n<|im_start|>assistant\n";

// A user turn and the beginning of the assistant's: Qwen3 (Yang et al., 2025).
std::string qwen3_chat(std::string_view user, Thinking thinking);

// A system turn and a user turn: Mistral Small 3.
std::string mistral_chat(std::string_view system, std::string_view user);

// A user turn preceded by `num_pictures` pictures, each a single <|image_pad|> between its markers,
// as JoyAI-Image-Edit was trained.
std::string joy_chat(std::string_view user, std::size_t num_pictures);

// A system turn that asks to describe a picture, and a user turn that does not end, as Krea 2 and
// Qwen-Image were trained. The assistant's turn follows it.
std::string description_chat(std::string_view user);

// A user turn preceded by `num_pictures` numbered pictures, each a single <|image_pad|> between its
// markers, as Qwen-Image-2.1 was trained. It does not end; an empty prompt is a space. The system
// turn stands before it, the assistant's behind.
inline constexpr std::string_view kQwen21System =
    "<|im_start|>system\nComprehend and analyze the provided prompt.<|im_end|>\n";
std::string qwen21_chat(std::string_view user, std::size_t num_pictures);

// A system turn and a user turn preceded by pictures, each a single <|image_pad|> between its
// markers, as Qwen-Image-Edit was trained; Edit-Plus numbers them.
enum class PictureNames { kNone, kNumbered };
std::string qwen_image_edit_chat(std::string_view user, std::size_t num_pictures,
                                 PictureNames names);

// The system message FLUX.2 was trained with (black-forest-labs/flux2, system_messages.py).
inline constexpr std::string_view kFlux2SystemMessage =
    "You are an AI that reasons about image descriptions. You give structured responses focusing "
    "on object relationships, object\nattribution and actions without speculation.";

}  // namespace braid
