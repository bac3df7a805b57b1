// Any bytes are either an address with parameters or refused; as base64 they are bytes that give
// the same text, or refused.
#include <cstdlib>

#include "serve/api_error.h"
#include "serve/http.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace braid::serve;
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try {
    HttpRequest request;
    read_target(text, request);
    if (request.path.empty()) std::abort();
  } catch (const ApiError&) {
  }
  if (bytes_of_base64(base64(text), "text") != text) std::abort();
  try {
    bytes_of_base64(text, "text");
  } catch (const ApiError&) {
  }
  return 0;
}
