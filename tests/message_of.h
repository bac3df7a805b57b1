// The error thrown by a test's call.
#pragma once

#include <string>

#include "base/error.h"

namespace braid {

// The message of the `Exception` thrown by `body`; empty if it throws nothing.
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
