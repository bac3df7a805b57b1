// Any bytes are either a path with parameters, or refused. Encoded as base64 they decode to
// themselves; read as base64 they decode or are refused.
#include <cstdlib>

#include "base/base64.h"
#include "serve/api_error.h"
#include "serve/body/fields.h"
#include "serve/messages.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid;
  using namespace braid::serve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    HttpRequest request;
    request.headers["host"] = "localhost";
    read_target(text, request);
    if (request.path.empty() || request.header("host").empty()) std::abort();
  } catch (const ApiError&) {
  }
  if (bytes_of_base64(base64(text), "text") != text) std::abort();
  try {
    bytes_of_base64(text, "text");
  } catch (const ApiError&) {
  }
  return 0;
}
