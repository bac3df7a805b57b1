// Text of protocols and names, where only ASCII letters have case.
#pragma once

#include <string>
#include <string_view>

namespace braid {

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

}  // namespace braid
