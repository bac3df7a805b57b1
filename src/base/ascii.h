// Text of protocols and names, where only ASCII letters have case.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace braid {

// Whatever the locale says: a program that embeds Braid may have set one.
inline bool is_ascii_digit(char c) { return c >= '0' && c <= '9'; }
inline bool is_ascii_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
inline bool is_ascii_alphanumeric(char c) { return is_ascii_letter(c) || is_ascii_digit(c); }

// Maps A to Z to lower case; other bytes are unchanged.
inline std::string ascii_lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return lower;
}

// `text` without leading and trailing spaces and tabs.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

// The parts of `text` between separators; one more than there are of these.
inline std::vector<std::string_view> segments_of(std::string_view text, char separator) {
  std::vector<std::string_view> segments;
  for (std::size_t begin = 0; begin <= text.size();) {
    const auto end = std::min(text.find(separator, begin), text.size());
    segments.push_back(text.substr(begin, end - begin));
    begin = end + 1;
  }
  return segments;
}

}  // namespace braid
