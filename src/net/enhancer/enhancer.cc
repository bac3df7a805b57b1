#include "net/enhancer/enhancer.h"

#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/json.h"
#include "base/sha256.h"
#include "net/enhancer/layout.h"
#include "net/enhancer/shown_pictures.h"
#include "net/enhancer/space.h"

namespace braid::net {
namespace {

// How the published enhancers are sampled: Qwen's example scripts, and diffusers' flux3 blocks. Of
// other models the server knows best.
Json sampling_of(EnhancerKind kind, bool is_edit) {
  switch (kind) {
    case EnhancerKind::kPlain:
      return Json::object();
    case EnhancerKind::kRewriter:
      return {{"temperature", 1.0},
              {"top_p", 0.95},
              {"top_k", 20},
              {"min_p", 0.0},
              {"seed", 42},
              {"presence_penalty", is_edit ? 0.0 : 1.5},
              {"max_tokens", is_edit ? 24'000 : 16'256},
              {"chat_template_kwargs", {{"enable_thinking", true}}}};
    case EnhancerKind::kCaptioner:
      return {{"temperature", 0.0},
              {"max_tokens", 3584},
              {"chat_template_kwargs", {{"enable_thinking", false}}}};
  }
  return Json::object();
}

// The user's turn as FLUX.3's enhancer was trained to read it (the same source).
std::string captioner_turn(const PlainPrompt& prompt, const std::string& locked) {
  auto request = prompt.text;
  if (!locked.empty())
    request = "ORIGINAL PROMPT:\n" + std::string(without_space(request)) +
              "\n\nLOCKED BOUNDING-BOX ANNOTATIONS ([y_min, x_min, y_max, x_max] on a 0-1000 "
              "canvas, with (0, 0) at the top-left). This is an authoritative JSON list of "
              "dictionaries; preserve every supplied identity, provenance value, null, and "
              "coordinate exactly:\n" +
              locked;
  if (prompt.pictures.empty()) return request;
  if (locked.empty())
    return "Reference images follow in order (the first image, the second image, ...).\nUser "
           "request: " +
           request + "\nOutput the caption.";
  return "Reference images follow in attachment order: ref_image_0, ref_image_1, ...\nUser editing "
         "instruction: " +
         request + "\nDecide the edit, imagine the target image, and output the annotation record.";
}

std::string turn_of(EnhancerKind kind, const PlainPrompt& prompt, const std::string& locked) {
  return kind == EnhancerKind::kCaptioner ? captioner_turn(prompt, locked) : prompt.text;
}

// Text alone, or pictures and text: some models' templates take only text as such.
Json content_of(const std::string& turn, const std::vector<std::string>& pictures) {
  if (pictures.empty()) return turn;
  auto parts = Json::array();
  for (const auto& jpeg : pictures) {
    std::string url = "data:image/jpeg;base64,";
    append_base64(url, jpeg);
    parts.push_back({{"type", "image_url"}, {"image_url", {{"url", std::move(url)}}}});
  }
  parts.push_back({{"type", "text"}, {"text", turn}});
  return parts;
}

}  // namespace

Enhancer::Enhancer(ChatServer server, SystemPrompts prompts, AnswerStore answers)
    : server_(std::move(server)), prompts_(std::move(prompts)), answers_(std::move(answers)) {}

Json Enhancer::question_of(const PlainPrompt& prompt, const std::string& locked) const {
  const bool is_edit = !prompt.pictures.empty();
  const bool is_captioner = prompts_.kind == EnhancerKind::kCaptioner;
  const auto task = std::string(is_edit ? "i2i" : "t2i") + (locked.empty() ? "" : "_bbox");
  const auto pictures = shown_pictures(
      prompt.pictures, is_captioner ? PictureRule::kShared : PictureRule::kMegapixel);
  auto question = sampling_of(prompts_.kind, is_edit);
  question["messages"] = {
      {{"role", "system"}, {"content", prompts_.texts.at(task)}},
      {{"role", "user"},
       {"content", content_of(turn_of(prompts_.kind, prompt, locked), pictures)}}};
  question["stream"] = false;
  return question;
}

EnhancedPrompt Enhancer::read(const std::string& answer, const PlainPrompt& prompt,
                              const std::string& locked) const {
  if (!locked.empty()) return read_laid_out(answer, locked);
  return read_enhanced(answer, int(prompt.pictures.size()));
}

// Boxes mean something to FLUX.3's enhancer alone: with others they stay as the user wrote them.
EnhancedPrompt Enhancer::enhance(const PlainPrompt& prompt, const std::stop_token& stop) const {
  const bool is_laid_out = !prompt.boxes.empty() && prompts_.kind == EnhancerKind::kCaptioner;
  const auto locked = is_laid_out ? rows_on_canvas(prompt.boxes) : std::string();
  auto question = question_of(prompt, locked);
  Chat chat(server_, stop);
  question["model"] = chat.model();
  const auto key = sha256_hex(server_.url + "\n" + json_line(question));
  if (answers_.find)
    if (const auto known = answers_.find(key)) return read(*known, prompt, locked);
  const auto answer = chat.answer(question);
  auto enhanced = read(answer, prompt, locked);
  if (answers_.keep) enhanced.keep = [=, keep = answers_.keep] { keep(key, answer); };
  return enhanced;
}

}  // namespace braid::net
