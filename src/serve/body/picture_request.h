// Turns a client's JSON into a complete request of the engine.
#pragma once

#include "serve/backend.h"
#include "serve/body/fields.h"
#include "serve/jobs/order.h"

namespace braid::serve {

constexpr std::size_t kLongestPrompt = 32'000;  // characters, as for OpenAI
constexpr std::size_t kLongestModel = 1000;

// Limits of one request.
struct RequestBounds {
  int max_pictures = 10;
  std::int64_t max_pixels = std::int64_t(2048) * 2048;  // per picture
  int max_steps = 200;
  std::int64_t max_input_pixels = std::int64_t(1) << 25;  // of all input pictures
  std::int64_t max_body_bytes = std::int64_t(32) << 20;   // told to clients; HttpServer's
};

// The model of that name, or the first one if it is empty or the name of one of OpenAI's, which
// many clients have wired in. Throws ApiError 404.
// `param` is the field that has it.
const Backend& backend_named(const std::string& name, const std::vector<Backend>& backends,
                             const std::string& param = "model");
// The field `model` names it; warns if the model has another name.
const Backend& read_model(Fields& fields, const std::vector<Backend>& backends);
// Whether `model` names a DALL-E, and `backend` stands for it under another name.
bool asks_for_dall_e(Fields& fields, const Backend& backend);

// `safety_identifier`, or the older `user`; empty if absent.
std::string read_user(Fields& fields);

// The fields of OpenAI's images API, and our additions. Draws a seed if none is given. Throws
// ApiError naming the field. Fields for the answer's form are left to the caller.
Request read_picture_fields(Fields& fields, const Backend& backend, const RequestBounds& bounds);

// `output_format`, `output_compression`, which sets the quality, and `background`: transparent is
// refused where no picture can be.
FileForm read_file_form(Fields& fields, const ModelInfo& info);

struct PixelSize {
  int width = 0, height = 0;
};
// The model's default, scaled down to `bounds`.
PixelSize default_size(const ModelInfo& info, const RequestBounds& bounds);

// The same shape within `bounds`, in the model's multiples.
PixelSize size_within(PixelSize size, const ModelInfo& info, const RequestBounds& bounds);

// Throws ApiError naming the field of the size if a picture would exceed `bounds`.
void require_few_pixels(int width, int height, const RequestBounds& bounds,
                        const std::string& param = "size");

// The request that the engine would run, and its warnings. Throws ApiError if it would refuse it.
struct CompletedRequest {
  Request request;
  std::vector<std::string> warnings;
};
// A size or number of steps that was not requested is kept within the bounds.
CompletedRequest completed_request(Request request, const Backend& backend,
                                   const RequestBounds& bounds);

std::uint64_t random_seed();  // below 2^53: exact in JavaScript, too

}  // namespace braid::serve
