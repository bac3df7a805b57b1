#include "serve/body/picture_request.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "base/error.h"
#include "base/random_bits.h"
#include "serve/api_error.h"
#include "serve/body/complaints.h"
#include "serve/body/loras.h"
#include "serve/body/sampling_fields.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestUser = 1000;  // characters
constexpr std::string_view kDallE = "dall-e-";

void read_size(Fields& fields, const ModelInfo& info, Request& request) {
  const auto size = fields.text("size", 100);
  if (size && *size != "auto") {
    const auto [width, height] = size_of(*size, "size");
    request.width = width;
    request.height = height;
  }
  const auto side = [&](const char* name, std::optional<int>& pixels) {
    const auto value = fields.integer({name}, 1, info.largest_side);
    if (value && pixels && *pixels != *value)
      refuse_contradiction({"size", *size}, {name, text_of(*value)});
    if (value) pixels = int(*value);
    const auto* const param = value ? name : "size";
    if (pixels && *pixels > info.largest_side)
      refuse(param, text_of("width and height should be at most ", info.largest_side, ", one is ",
                            *pixels));
    if (pixels && *pixels % info.size_multiple != 0)
      refuse(param, text_of("width and height should be multiples of ", info.size_multiple,
                            ", one is ", *pixels));
  };
  side("width", request.width);
  side("height", request.height);
}

// A model without frames or layers says so, whatever their number.
void read_frames(Fields& fields, const ModelInfo& info, Request& request) {
  using Limits = std::numeric_limits<std::int64_t>;
  const bool has_many = info.frames.most > 1;
  const auto frames = fields.integer({"frames"}, has_many ? 1 : Limits::min(),
                                     has_many ? info.frames.most : Limits::max());
  if (frames && !has_many && *frames != 1)
    refuse("frames", text_of("this model draws pictures, of one frame each: 'frames' should be 1, ",
                             "it is ", *frames));
  if (frames) request.frames = int(*frames);
  if (info.layers.most == 0 && fields.has("layers"))
    refuse("layers", "this model draws no layers: 'layers' should be left out, it is there");
  if (const auto layers = fields.integer({"layers"}, 1, info.layers.most))
    request.layers = int(*layers);
}

void read_guidance(Fields& fields, const ModelInfo& info, Request& request) {
  request.guidance = fields.number({"guidance", "guidance_scale"});
  if (const auto scale = fields.number({"true_cfg", "true_cfg_scale"})) request.true_cfg = *scale;
  if (const auto rescale = fields.number({"guidance_rescale"})) request.guidance_rescale = *rescale;
  if (const auto cap = fields.number({"cfg_norm_cap"})) request.cfg_norm_cap = *cap;
  request.cfg_normalize = fields.flag("cfg_normalize");
  if (const auto until = fields.number({"cfg_until"})) request.cfg_until = *until;
  request.negative_prompt = fields.text("negative_prompt", kLongestPrompt);
  request.boxes = fields.text("boxes", kLongestPrompt).value_or("");
  if (!request.boxes.empty() && !info.takes_boxes)
    refuse("boxes", "this model takes no boxes: it was not trained to follow layouts");
  if (auto second = fields.text("negative_prompt_2", kLongestPrompt).value_or(""); !second.empty())
    request.negative_prompt_2 = std::move(second);
}

bool is_called(const Backend& backend, const std::string& name) {
  return backend.model == name || std::ranges::count(backend.names, name) > 0 ||
         std::ranges::count(backend.aliases, name) > 0;
}

// Names that many clients have wired in.
bool is_openais_model(const std::string& name) {
  return name.starts_with(kDallE) || name.starts_with("gpt-image-") ||
         name.starts_with("chatgpt-image-");
}

std::int64_t num_pixels(PixelSize size) { return std::int64_t(size.width) * size.height; }

PixelSize scaled_down(PixelSize size, std::int64_t max_pixels, int multiple) {
  const double scale = std::sqrt(double(max_pixels) / double(num_pixels(size)));
  if (scale >= 1) return size;
  const auto side = [&](int pixels) {
    return std::max(1, int(pixels * scale) / multiple) * multiple;
  };
  return {.width = side(size.width), .height = side(size.height)};
}

}  // namespace

std::uint64_t random_seed() { return random_bits() >> 11; }

const Backend& backend_named(const std::string& name, const std::vector<Backend>& backends,
                             const std::string& param) {
  if (name.empty()) return backends.front();
  std::string names;
  for (const auto& backend : backends) {
    if (is_called(backend, name)) return backend;
    names += (names.empty() ? "'" : ", '") + backend.model + "'";
  }
  if (is_openais_model(name)) return backends.front();
  throw ApiError(404,
                 "there is no model '" + name.substr(0, 100) + "' here: this server has " + names,
                 "model_not_found", param);
}

const Backend& read_model(Fields& fields, const std::vector<Backend>& backends) {
  const auto name = fields.text("model", kLongestModel).value_or("");
  const auto& backend = backend_named(name, backends);
  if (!name.empty() && !is_called(backend, name))
    fields.warn(text_of("the model is '", backend.model, "': there is no '", name, "' here"));
  return backend;
}

bool asks_for_dall_e(Fields& fields, const Backend& backend) {
  const auto name = fields.text("model", kLongestModel).value_or("");
  return name.starts_with(kDallE) && !is_called(backend, name);
}

std::string read_user(Fields& fields) {
  const auto user = fields.text("user", kLongestUser).value_or("");
  const auto identifier = fields.text("safety_identifier", kLongestUser).value_or("");
  return identifier.empty() ? user : identifier;
}

Request read_picture_fields(Fields& fields, const Backend& backend, const RequestBounds& bounds) {
  const auto prompt = fields.text("prompt", kLongestPrompt);
  if (!prompt) throw ApiError(400, "there is no 'prompt'", "missing_required_parameter", "prompt");
  Request request;
  request.prompts = {*prompt};
  if (auto second = fields.text("prompt_2", kLongestPrompt).value_or(""); !second.empty())
    request.prompts_2 = {std::move(second)};
  request.num_images = int(fields.integer({"n"}, 1, bounds.max_pictures).value_or(1));
  read_size(fields, backend.info, request);
  read_frames(fields, backend.info, request);
  if (const auto steps = fields.integer({"steps", "num_inference_steps"}, 1, bounds.max_steps))
    request.steps = int(*steps);
  if (const auto tokens = fields.integer({"max_sequence_length"}, 1, backend.info.max_text_tokens))
    request.max_sequence_length = int(*tokens);
  read_sampling(fields, request.sampling);
  read_guidance(fields, backend.info, request);
  request.seed = fields.seed().value_or(random_seed());
  apply_loras(read_loras(fields), backend, request);
  return request;
}

namespace {

bool is_opaque(Fields& fields, const ModelInfo& info, FileForm::Format format) {
  const auto background = fields.word("background", {"auto", "opaque", "transparent"}, "auto");
  if (background == "transparent" && !info.draws_alpha)
    refuse("background",
           "this model draws no transparent pictures: the background should be auto "
           "or opaque");
  if (background == "transparent" && format == FileForm::Format::kJpeg)
    refuse("background",
           "JPEG has no transparency: for a transparent background the output_format "
           "should be png or webp");
  return background == "opaque";
}

}  // namespace

FileForm read_file_form(Fields& fields, const ModelInfo& info) {
  const auto name = fields.word("output_format", {"png", "jpeg", "webp"}, "png");
  using Format = FileForm::Format;
  const auto format = name == "jpeg"   ? Format::kJpeg
                      : name == "webp" ? Format::kWebp
                                       : Format::kPng;
  const auto quality = fields.integer({"output_compression"}, 0, 100).value_or(100);
  if (quality != 100 && format == Format::kPng)
    fields.warn("'output_compression' is not used: a PNG loses nothing, JPEG and WebP have it");
  return {.format = format, .quality = int(quality), .is_opaque = is_opaque(fields, info, format)};
}

PixelSize default_size(const ModelInfo& info, const RequestBounds& bounds) {
  return scaled_down({.width = info.width, .height = info.height}, bounds.max_pixels,
                     info.size_multiple);
}

PixelSize size_within(PixelSize size, const ModelInfo& info, const RequestBounds& bounds) {
  return scaled_down(size, bounds.max_pixels, info.size_multiple);
}

void require_few_pixels(int width, int height, const RequestBounds& bounds,
                        const std::string& param) {
  const auto pixels = num_pixels({.width = width, .height = height});
  if (pixels > bounds.max_pixels)
    refuse(param, text_of("a picture may have at most ", bounds.max_pixels,
                          " pixels here, this one has ", pixels));
}

CompletedRequest completed_request(Request request, const Backend& backend,
                                   const RequestBounds& bounds) {
  // The engine would first meet what such a size does to its schedule, and tell of that.
  if (request.width && request.height) require_few_pixels(*request.width, *request.height, bounds);
  CompletedRequest completed;
  auto& complete = completed.request;
  const auto fill_in = [&] {
    completed.warnings.clear();
    const auto keep = [&](const std::string& sentence) {
      completed.warnings.push_back(with_lora_names(sentence, request, backend).text);
    };
    try {
      complete = backend.complete(request, {.warning = keep});
    } catch (const InputError& error) {
      const auto told = with_lora_names(error.what(), request, backend);
      throw ApiError(400, told.text, told.is_gone ? "lora_not_found" : "invalid_value",
                     told.names_one ? "lora" : field_of(error));
    }
  };
  fill_in();
  const PixelSize chosen{.width = *complete.width, .height = *complete.height};
  const bool is_too_large =
      !request.width && !request.height && num_pixels(chosen) > bounds.max_pixels;
  const bool has_too_many_steps = !request.steps && *complete.steps > bounds.max_steps;
  if (is_too_large) {
    const auto size = scaled_down(chosen, bounds.max_pixels, backend.info.size_multiple);
    request.width = size.width;
    request.height = size.height;
  }
  if (has_too_many_steps) request.steps = bounds.max_steps;
  if (is_too_large || has_too_many_steps) fill_in();
  require_few_pixels(*complete.width, *complete.height, bounds);
  if (*complete.steps > bounds.max_steps)
    refuse("steps", text_of("a picture may take at most ", bounds.max_steps,
                            " steps here, this one takes ", *complete.steps));
  return completed;
}

}  // namespace braid::serve
