// Errors name the thing, what was expected and what was found.
#pragma once

#include <algorithm>
#include <string>

#include "base/text_stream.h"
#include "braid/error.h"

namespace braid {

// NULs, which names in files may have, become spaces: what() would end at one.
template <class... Parts>
std::string text_of(const Parts&... parts) {
  TextWriter out;
  (out << ... << parts);
  auto text = std::move(out).str();
  std::replace(text.begin(), text.end(), '\0', ' ');
  return text;
}

// Throws an Error composed of `parts` unless `holds`: something failed while running.
template <class... Parts>
void check(bool holds, const Parts&... parts) {
  if (!holds) throw Error(text_of(parts...));
}

// Throws an InputError composed of `parts` unless `holds`: the user's input is unusable.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw InputError(text_of(parts...));
}

}  // namespace braid
