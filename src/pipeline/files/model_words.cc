#include "pipeline/files/model_words.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <string_view>

#include "base/ascii.h"
#include "pipeline/families/known_names.h"

namespace braid {
namespace {

bool is_lower(char c) { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) { return c >= 'A' && c <= 'Z'; }

// "fluxDev" is cut before the capital, "ZITRealistic" before the one that begins a word.
bool is_cut(const std::string& name, std::size_t i) {
  const char before = name[i - 1], here = name[i];
  if (is_ascii_digit(before) != is_ascii_digit(here)) return true;
  if (is_lower(before) && is_upper(here)) return true;
  return is_upper(before) && is_upper(here) && i + 1 < name.size() && is_lower(name[i + 1]);
}

std::vector<std::string> cut_at_signs(const std::string& name) {
  std::vector<std::string> words;
  bool is_open = false;
  for (std::size_t i = 0; i < name.size(); ++i) {
    const bool is_part = is_ascii_letter(name[i]) || is_ascii_digit(name[i]);
    if (is_part && (!is_open || is_cut(name, i))) words.emplace_back();
    if (is_part) words.back() += name[i];
    is_open = is_part;
  }
  for (auto& word : words) word = ascii_lower_case(word);
  return words;
}

void add_cut(const std::string& word, std::vector<std::string>& words) {
  for (const auto certain : certain_words()) {
    const auto at = word.find(certain);
    if (at == word.npos || word.size() == certain.size()) continue;
    if (at > 0) add_cut(word.substr(0, at), words);
    words.emplace_back(certain);
    if (at + certain.size() < word.size()) add_cut(word.substr(at + certain.size()), words);
    return;
  }
  words.push_back(word);
}

bool has(const std::vector<std::string>& words, std::string_view word) {
  return std::find(words.begin(), words.end(), word) != words.end();
}

// "de-turbo", "undistilled"
bool is_denied(const std::vector<std::string>& words, std::string_view word) {
  constexpr std::array<std::string_view, 4> kDenials = {"de", "un", "non", "no"};
  for (std::size_t i = 1; i < words.size(); ++i)
    if (words[i] == word &&
        std::find(kDenials.begin(), kDenials.end(), words[i - 1]) != kDenials.end())
      return true;
  return false;
}

bool is_format(const std::string& word) {
  constexpr std::array<std::string_view, 22> kFormats = {
      "fp",   "bf",   "f",      "e",    "m", "fn",    "q",           "k",   "s",  "l",  "int",
      "nvfp", "mxfp", "scaled", "gguf", "v", "comfy", "safetensors", "sft", "xl", "iq", "pruned"};
  return is_ascii_digit(word.front()) ||
         std::find(kFormats.begin(), kFormats.end(), word) != kFormats.end();
}

}  // namespace

std::vector<std::string> words_of_name(const std::string& name) {
  std::vector<std::string> words;
  for (const auto& word : cut_at_signs(name)) add_cut(word, words);
  return words;
}

bool says_word(const std::vector<std::string>& words, const std::string& word) {
  const bool is_undistilled = is_denied(words, "distill") || is_denied(words, "turbo");
  if (word == "turbo") return (has(words, word) && !is_denied(words, word)) || has(words, "zit");
  if (word == "base") return has(words, word) || has(words, "zib") || is_undistilled;
  if (word == "dev")
    return has(words, word) || has(words, "krea") || (is_undistilled && !has(words, "schnell"));
  if (word == "canny") return has(words, word) || has(words, "depth");
  return has(words, word);
}

std::vector<std::string> without_formats(const std::vector<std::string>& words) {
  auto kept = words;
  std::erase_if(kept, is_format);
  return kept;
}

}  // namespace braid
