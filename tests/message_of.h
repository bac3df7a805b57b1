// What a test's call throws.
#pragma once

#include <string>

#include "base/error.h"

namespace braid {

// The message of the `Exception` that `body` throws; empty when it throws none.
template <class Exception = InputError, class Body>
std::string message_of(Body body) {
  try {
    body();
  } catch (const Exception& e) {
    return e.what();
  }
  return "";
}

}  // namespace braid
