// Enumerations of a caller, who may have cast a number to one.
#pragma once

#include "base/error.h"

namespace braid {

// `value`; throws InputError, naming the field, unless it lies between the first of its type, 0,
// and `last`.
template <class Choice>
Choice checked_choice(const char* field, Choice value, Choice last) {
  require(int(value) >= 0 && int(value) <= int(last), "there is no such ", field, " as number ",
          int(value));
  return value;
}

}  // namespace braid
