#include "image/parameters.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/json.h"
#include "image/web_ui_terms.h"

namespace braid {
namespace {

constexpr std::string_view kNegative = "Negative prompt: ";
constexpr std::string_view kWebUiKey = "parameters";

// Quoted if it could not be read back otherwise.
std::string quoted(const std::string& value) {
  const bool is_plain = !value.empty() && value.front() != ' ' && value.back() != ' ' &&
                        value.find_first_of(",:\"\n\r") == value.npos;
  return is_plain ? value : json_line(Json(value));
}

// The quotation at the start of `line`.
std::string_view quotation(std::string_view line) {
  std::size_t end = 1;
  while (end < line.size() && line[end] != '"') end += line[end] == '\\' ? 2 : 1;
  return line.substr(0, end + 1);
}

// "Steps: 4, Size: 64x64, lora: \"a=1, b=2\"", up to where this form ends.
PngText read_line(std::string_view line) {
  PngText text;
  while (!line.empty()) {
    const auto colon = line.find(": ");
    if (colon == line.npos) break;
    const auto key = line.substr(0, colon);
    line.remove_prefix(colon + 2);
    const bool is_quoted = line.starts_with('"');
    const auto part = is_quoted ? quotation(line) : line.substr(0, line.find(", "));
    line.remove_prefix(part.size());
    if (!line.empty() && !line.starts_with(", ")) break;
    line.remove_prefix(std::min<std::size_t>(line.size(), 2));
    const auto value =
        is_quoted ? nlohmann::json::parse(part, nullptr, false) : nlohmann::json(part);
    if (!value.is_string()) break;
    text.emplace_back(key, value.get<std::string>());
  }
  return text;
}

struct Prompts {
  std::string prompt, negative;
  bool operator==(const Prompts&) const = default;
};

Prompts prompts_of(const PngText& text) {
  Prompts prompts;
  for (const auto& [key, value] : text) {
    if (key == "prompt") prompts.prompt = value;
    if (key == "negative_prompt") prompts.negative = value;
  }
  return prompts;
}

// For prompts that the web UI's form, which has no quotes around them, would divide elsewhere.
std::string prompts_in_line(const Prompts& prompts) {
  return "prompt: " + json_line(prompts.prompt) +
         ", negative_prompt: " + json_line(prompts.negative);
}

}  // namespace

std::string parameters_of(const PngText& text) {
  std::string prompts, line;
  for (const auto& [key, value] : in_web_ui_terms(text)) {
    if (key == "prompt")
      prompts = value + prompts;
    else if (key == "negative_prompt")
      prompts += "\n" + std::string(kNegative) + value;
    else
      line += (line.empty() ? "" : ", ") + key + ": " + quoted(value);
  }
  const auto parameters = prompts + (line.empty() ? "" : "\n" + line);
  const auto said = prompts_of(text);
  if (said == Prompts{} || said == prompts_of(text_of_parameters(parameters))) return parameters;
  return parameters + (line.empty() ? "\n" : ", ") + prompts_in_line(said);
}

PngText with_parameters(PngText text) {
  if (!is_of_braid(text)) return text;
  text = without_own_parameters(std::move(text));
  auto parameters = parameters_of(text);
  auto size = kWebUiKey.size() + parameters.size();
  for (const auto& [key, value] : text) size += key.size() + value.size();
  if (size <= kMaxPngText) text.emplace_back(kWebUiKey, std::move(parameters));
  return text;
}

PngText without_own_parameters(PngText text) {
  if (is_of_braid(text))
    std::erase_if(text, [](const auto& entry) { return entry.first == kWebUiKey; });
  return text;
}

PngText with_original_prompt(PngText text, const std::string& original) {
  if (original.empty()) return text;
  const auto prompt = std::ranges::find(text, "prompt", &PngText::value_type::first);
  text.insert(prompt == text.end() ? prompt : prompt + 1, {"original_prompt", original});
  return text;
}

PngText text_of_parameters(std::string_view parameters) {
  const auto last = parameters.rfind('\n');
  const auto begin = last == parameters.npos ? 0 : last + 1;
  const bool has_line = parameters.substr(begin).starts_with("Steps: ");
  const auto prompts = has_line ? parameters.substr(0, begin == 0 ? 0 : last) : parameters;
  const auto lines = "\n" + std::string(prompts);  // an empty prompt may have no line of its own
  const auto negative = lines.find("\n" + std::string(kNegative));
  PngText text = {{"prompt", negative == 0 ? "" : lines.substr(1, negative - 1)}};
  if (negative != lines.npos)
    text.emplace_back("negative_prompt", lines.substr(negative + 1 + kNegative.size()));
  if (!has_line) return text;
  auto rest = in_own_terms(read_line(parameters.substr(begin)));
  if (std::ranges::count(rest, "prompt", &PngText::value_type::first) > 0) {
    const auto prompts = prompts_of(rest);
    text = {{"prompt", prompts.prompt}};
    if (!prompts.negative.empty()) text.emplace_back("negative_prompt", prompts.negative);
    std::erase_if(rest, [](const auto& field) {
      return field.first == "prompt" || field.first == "negative_prompt";
    });
  }
  std::move(rest.begin(), rest.end(), std::back_inserter(text));
  return text;
}

}  // namespace braid
