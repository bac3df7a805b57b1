// Errors say what was expected, what came, and whose name it has.
#pragma once

#include <sstream>
#include <string>

#include "braid/error.h"

namespace braid {

template <class... Parts>
std::string text_of(const Parts&... parts) {
  std::ostringstream out;
  (out << ... << parts);
  return out.str();
}

// Throws an Error made of `parts` unless `holds`: something failed while running.
template <class... Parts>
void check(bool holds, const Parts&... parts) {
  if (!holds) throw Error(text_of(parts...));
}

// Throws an InputError made of `parts` unless `holds`: what the user gave is not usable.
template <class... Parts>
void require(bool holds, const Parts&... parts) {
  if (!holds) throw InputError(text_of(parts...));
}

}  // namespace braid
