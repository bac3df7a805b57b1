#include "text/chat.h"

namespace braid {
namespace {

// Stands for the tokens of a picture.
constexpr std::string_view kPicture = "<|vision_start|><|image_pad|><|vision_end|>";

}  // namespace

std::string qwen3_chat(std::string_view user, Thinking thinking) {
  std::string chat = "<|im_start|>user\n";
  chat += user;
  chat += kAssistantTurn;
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

std::string description_chat(std::string_view user) {
  std::string chat =
      "<|im_start|>system\nDescribe the image by detailing the color, shape, size, texture, "
      "quantity, text, spatial relationships of the objects and background:<|im_end|>\n"
      "<|im_start|>user\n";
  chat += user;
  return chat;
}

std::string qwen21_chat(std::string_view user, std::size_t num_pictures) {
  std::string chat = "<|im_start|>user\n";
  for (std::size_t i = 1; i <= num_pictures; ++i) {
    if (i > 1) chat += ' ';
    chat += "<image" + std::to_string(i) + ">";
    chat += kPicture;
  }
  chat += user.empty() ? " " : user;
  return chat;
}

std::string qwen_image_edit_chat(std::string_view user, std::size_t num_pictures,
                                 PictureNames names) {
  std::string chat =
      "<|im_start|>system\nDescribe the key features of the input image (color, shape, size, "
      "texture, objects, background), then explain how the user's text instruction should alter or "
      "modify the image. Generate a new image that meets the user's requirements while maintaining "
      "consistency with the original input where appropriate.<|im_end|>\n<|im_start|>user\n";
  for (std::size_t i = 1; i <= num_pictures; ++i) {
    if (names == PictureNames::kNumbered) chat += "Picture " + std::to_string(i) + ": ";
    chat += kPicture;
  }
  chat += user;
  chat += kAssistantTurn;
  return chat;
}

// The system turn begins with a backslash and an n that were meant to be a line feed.
std::string joy_chat(std::string_view user, std::size_t num_pictures) {
  std::string chat =
      "<|im_start|>system\n \\nDescribe the image by detailing the color, shape, size, texture, "
      "quantity, text, spatial relationships of the objects and background:<|im_end|>\n"
      "<|im_start|>user\n";
  for (std::size_t i = 0; i < num_pictures; ++i) chat += kPicture;
  chat += user;
  chat += kAssistantTurn;
  return chat;
}

}  // namespace braid
