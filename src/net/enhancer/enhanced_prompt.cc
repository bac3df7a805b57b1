#include "net/enhancer/enhanced_prompt.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/utf8.h"
#include "net/enhancer/layout.h"
#include "net/enhancer/space.h"

namespace braid::net {
namespace {

constexpr std::size_t kLongestAnswer = 1 << 20;  // bytes, without thoughts
constexpr int kMostObjects = 256;                // that are tried
constexpr int kLongestSide = 65'536, kNarrowest = 16;
constexpr std::array kPromptNames = {"rewritten_prompt", "rewrited_prompt", "enhanced_prompt",
                                     "revised_prompt", "prompt"};

template <class... Words>
[[noreturn]] void nonsense(const Words&... words) {
  throw EnhancerFailure(EnhancerFailure::Kind::kNonsense,
                        text_of("the enhancer answers nonsense: ", words...));
}

// Where a prompt ends in an opened block of thoughts, only its end is in the answer.
std::string_view without_thoughts(std::string_view text) {
  constexpr std::string_view kBegin = "<think>", kEnd = "</think>";
  if (const auto end = text.rfind(kEnd); end != text.npos) text.remove_prefix(end + kEnd.size());
  if (text.find(kBegin) != text.npos) nonsense("its thoughts have no end");
  return without_space(text);
}

// ```json ... ```
std::string_view without_fence(std::string_view text) {
  constexpr std::string_view kFence = "```";
  if (!text.starts_with(kFence)) return text;
  const auto line = text.find('\n');
  if (line == text.npos || !text.ends_with(kFence) || text.size() < line + kFence.size())
    nonsense("its block of code has no end");
  return without_space(text.substr(line, text.size() - kFence.size() - line));
}

// The object at the start of `text`, up to its brace; empty if that is missing.
std::string_view balanced(std::string_view text) {
  int depth = 0;
  bool is_quoted = false;
  for (std::size_t at = 0; at < text.size(); ++at) {
    const char c = text[at];
    if (is_quoted) {
      if (c == '\\') ++at;
      is_quoted = c != '"';
      continue;
    }
    is_quoted = c == '"';
    depth += c == '{' ? 1 : c == '}' ? -1 : 0;
    if (depth == 0) return text.substr(0, at + 1);
  }
  return {};
}

const char* prompt_name(const Json& object) {
  for (const char* const name : kPromptNames)
    if (object.contains(name)) return name;
  return nullptr;
}

// The last object that has a prompt; null if there is none.
Json object_in(std::string_view text) {
  auto begin = text.rfind('{');
  for (int tried = 0; begin != text.npos && tried < kMostObjects; ++tried) {
    try {
      auto object = parse_json(balanced(text.substr(begin)), "the answer");
      if (object.is_object() && prompt_name(object)) return object;
    } catch (const InputError&) {  // a brace of something else
    }
    begin = begin == 0 ? text.npos : text.rfind('{', begin - 1);
  }
  return {};
}

void check_prompt(const std::string& prompt) {
  if (without_space(prompt).empty()) nonsense("an empty prompt");
  const auto characters = num_characters(prompt);
  if (characters > kLongestEnhanced)
    nonsense("a prompt of ", characters, " characters; at most ", kLongestEnhanced, " are drawn");
  for (std::size_t at = 0; at < prompt.size();) {
    const auto [code, size] = decode_utf8(prompt, at);
    const bool is_space = code == '\n' || code == '\t' || code == '\r';
    if (code == 0xfffd || code == 0x7f || (code < ' ' && !is_space))
      nonsense("bytes that are no text");
    at += size;
  }
}

// Two numbers with `between` in their midst.
std::optional<WidthHeight> two_numbers(std::string_view text, char between) {
  WidthHeight sides;
  const auto middle = text.find(between);
  if (middle == text.npos) return {};
  const auto read = [](std::string_view part, int& side) {
    const auto* const end = part.data() + part.size();
    const auto [rest, error] = std::from_chars(part.data(), end, side);
    return error == std::errc() && rest == end && side > 0 && side <= kLongestSide;
  };
  const bool is_read =
      read(text.substr(0, middle), sides.width) && read(text.substr(middle + 1), sides.height);
  return is_read ? std::optional(sides) : std::nullopt;
}

// Text that may be absent, null or empty.
std::string text_field(const Json& object, const char* name) {
  const auto it = object.find(name);
  if (it == object.end() || it->is_null()) return "";
  if (!it->is_string()) nonsense("'", name, "' is no text");
  return std::string(without_space(it->get<std::string>()));
}

std::optional<WidthHeight> shape_field(const Json& object) {
  const auto text = text_field(object, "wh_ratio");
  if (text.empty()) return {};
  const auto shape = two_numbers(text, ':');
  if (!shape || shape->width > kNarrowest * shape->height ||
      shape->height > kNarrowest * shape->width)
    nonsense("'wh_ratio' should be such as 16:9");
  return shape;
}

std::optional<WidthHeight> size_field(const Json& object) {
  const auto text = text_field(object, "size");
  if (text.empty()) return {};
  const auto pixels = two_numbers(text, 'x');
  if (!pixels) nonsense("'size' should be such as 1024x768");
  return pixels;
}

// "<image2>"
std::optional<int> picture_field(const Json& object, int num_pictures) {
  const auto text = text_field(object, "ratio_follow");
  if (text.empty()) return {};
  constexpr std::string_view kName = "<image";
  int number = 0;
  const auto* const end = text.data() + text.size();
  const bool has_name = text.starts_with(kName) && text.ends_with('>');
  const auto [rest, error] = has_name ? std::from_chars(text.data() + kName.size(), end, number)
                                      : std::from_chars_result{end, std::errc()};
  if (error != std::errc() || rest != end - 1 || number < 1 || number > num_pictures)
    nonsense("'ratio_follow' names none of the ", num_pictures, " pictures");
  return number;
}

EnhancedPrompt read_object(const Json& object, int num_pictures) {
  const auto* const name = prompt_name(object);
  if (!object.at(name).is_string()) nonsense("'", name, "' is no text");
  EnhancedPrompt read{.prompt = text_field(object, name),
                      .shape = shape_field(object),
                      .pixels = size_field(object),
                      .like_picture = picture_field(object, num_pictures)};
  const auto boxes = object.find("boxes");
  if (boxes == object.end() || boxes->is_null() || boxes->empty()) return read;
  if (!boxes->is_array()) nonsense("'boxes' is no list");
  for (const auto& row : *boxes)
    if (!is_planned_row(row)) nonsense("'boxes' has a row that is no box");
  read.boxes = boxes->dump();
  return read;
}

// Strips thoughts, fence and the space around it.
std::string answered_text(std::string_view content) {
  if (!is_valid_utf8(content)) nonsense("bytes that are no text");
  const auto text = without_fence(without_thoughts(content));
  if (text.empty()) nonsense("an empty answer");
  if (text.size() > kLongestAnswer) nonsense("an answer of ", text.size(), " bytes");
  return std::string(text);
}

}  // namespace

EnhancedPrompt read_laid_out(std::string_view content, const std::string& locked) {
  auto laid_out = with_locked_rows(answered_text(content), locked);
  check_prompt(laid_out.caption);
  return {.prompt = std::move(laid_out.caption), .boxes = std::move(laid_out.rows)};
}

EnhancedPrompt read_enhanced(std::string_view content, int num_pictures) {
  const auto text = answered_text(content);
  const auto object = object_in(text);
  EnhancedPrompt read;
  if (object.is_object()) {
    read = read_object(object, num_pictures);
  } else {
    const bool is_json = text.front() == '{' || text.front() == '[' ||
                         text.find("\"rewritten_prompt\"") != text.npos ||
                         text.find("\"rewrited_prompt\"") != text.npos;
    if (is_json) nonsense("JSON without an end, or without a prompt");
    read.prompt = text;
  }
  check_prompt(read.prompt);
  return read;
}

}  // namespace braid::net
