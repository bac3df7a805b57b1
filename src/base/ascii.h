// Text of protocols and names, where only ASCII letters have a case.
#pragma once

#include <string>
#include <string_view>

namespace braid {

// A to Z as a to z; all other bytes as they are.
inline std::string ascii_lower_case(std::string_view text) {
  std::string lower(text);
  for (auto& c : lower)
    if (c >= 'A' && c <= 'Z') c = char(c - 'A' + 'a');
  return lower;
}

// Without spaces and tabs at its ends.
inline std::string_view trimmed(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

}  // namespace braid
