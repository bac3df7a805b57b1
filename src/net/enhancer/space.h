// Text without the space around it, as Python's strip() leaves it.
#pragma once

#include <string_view>

namespace braid::net {

inline std::string_view without_space(std::string_view text) {
  constexpr std::string_view kSpace = " \t\r\n\v\f";
  const auto begin = text.find_first_not_of(kSpace);
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(kSpace) - begin + 1);
}

}  // namespace braid::net
