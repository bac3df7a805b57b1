// Any bytes are either a request for pictures within the server's bounds, or get an error a client
// understands.
#include <cstdlib>

#include "base/error.h"
#include "serve/api_error.h"
#include "serve/body/picture_request.h"

namespace {

using braid::Request;

braid::serve::Backend backend() {
  braid::serve::Backend backend;
  backend.model = "demo";
  backend.info = {.width = 128,
                  .height = 128,
                  .steps = 20,
                  .guidance = 3.5,
                  .max_sequence_length = 64,
                  .largest_side = 4096,
                  .max_text_tokens = 512};
  backend.complete = [](const Request& request, const braid::Hooks&) {
    auto all = request;
    all.width = request.width.value_or(128);
    all.height = request.height.value_or(128);
    all.steps = request.steps.value_or(20);
    return all;
  };
  return backend;
}

void check_bounds(const Request& r) {
  const bool is_within = r.num_images >= 1 && r.num_images <= 10 && *r.steps >= 1 &&
                         *r.steps <= 200 && *r.width % 16 == 0 && *r.height % 16 == 0 &&
                         std::int64_t(*r.width) * *r.height <= 2048 * 2048;
  if (!is_within) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const auto engine = backend();
  try {
    braid::serve::Fields fields({reinterpret_cast<const char*>(data), size});
    const auto request = read_picture_fields(fields, engine, {});
    fields.word("response_format", {"b64_json", "url"}, "b64_json");
    fields.finish();
    check_bounds(completed_request(request, engine, {}).request);
  } catch (const braid::serve::ApiError& error) {
    if (error_json(error).empty()) std::abort();
  }
  return 0;
}
