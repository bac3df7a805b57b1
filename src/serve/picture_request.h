// What a client asks for, from JSON to a complete request of the engine.
#pragma once

#include "serve/backend.h"
#include "serve/fields.h"
#include "serve/order.h"

namespace braid::serve {

// What one request may ask for.
struct RequestBounds {
  int max_pictures = 10;
  std::int64_t max_pixels = std::int64_t(2048) * 2048;  // of a picture
  int max_steps = 200;
  std::int64_t max_input_pixels = std::int64_t(1) << 25;  // of all pictures that it brings along
};

// The model that `name` says, the first one where it is empty. Throws ApiError 404.
const Backend& backend_named(const std::string& name, const std::vector<Backend>& backends);
// By the field `model`.
const Backend& read_model(Fields& fields, const std::vector<Backend>& backends);

// The fields that OpenAI's images have, and ours beside them. Without a seed it is drawn. Throws
// ApiError naming the field. Fields of the answer's form are left to the caller.
Request read_picture_fields(Fields& fields, const Backend& backend, const RequestBounds& bounds);

// `output_format` and `output_compression`, which is the quality.
FileForm read_file_form(Fields& fields);

// Throws ApiError naming the size where a picture would have more than `bounds` allow.
void require_few_pixels(int width, int height, const RequestBounds& bounds);

// The request that the engine would run, and what it says of it. Throws ApiError where it would
// not.
struct CompletedRequest {
  Request request;
  std::vector<std::string> warnings;
};
// Pictures in that would make a larger one than there may be are scaled down to it.
CompletedRequest completed_request(Request request, const Backend& backend,
                                   const RequestBounds& bounds);

std::uint64_t random_seed();  // below 2^53: exact in JavaScript too

}  // namespace braid::serve
