// The endpoints of AUTOMATIC1111's web UI for pictures that exist: their text, and other sizes of
// them. What takes a model that is not here says so.
#include <algorithm>
#include <array>
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "image/parameters.h"
#include "image/picture_file.h"
#include "image/resize.h"
#include "serve/api/sdapi.h"
#include "serve/api_error.h"
#include "serve/body/fields.h"

namespace braid::serve {
namespace {

constexpr int kMultiple = 8;  // of the sides that the web UI makes
constexpr std::size_t kLongestName = 1000, kMostImages = 64;
constexpr std::array kUpscalers = {"None", "Lanczos", "Nearest"};

// The web UI's own PNGs have all their settings in one entry, in that program's form.
constexpr const char* kWebUiEntry = "parameters";

Json json_of_text(const PngText& text) {
  auto json = Json::object();
  for (const auto& [key, value] : text) json[key] = value;
  return json;
}

// The text in a picture's file, in these clients' form and as key-value items.
Answer png_info(const ApiContext&, const HttpRequest& http, const std::vector<std::string>&) {
  Fields fields(http.body);
  const auto image = fields.text("image", std::string::npos).value_or("");
  const auto bytes = bytes_of_base64(image, "image");
  if (bytes.empty()) refuse("image", "'image' should be a picture in base64, it is empty");
  PngText text;
  try {
    text = read_picture_text(bytes, "the image");
  } catch (const InputError& error) {
    refuse("image", error.what());
  }
  auto items = json_of_text(text);
  const auto web_ui = std::ranges::find(text, kWebUiEntry, &PngText::value_type::first);
  if (web_ui == text.end())
    return json_answer({{"info", parameters_of(text)}, {"items", items}, {"parameters", items}});
  items.erase(kWebUiEntry);
  const auto settings = json_of_text(text_of_parameters(web_ui->second));
  return json_answer({{"info", web_ui->second}, {"items", items}, {"parameters", settings}});
}

// A request's new size and how it is reached.
struct Upscaling {
  std::string upscaler;
  double factor = 2;
  std::optional<Sides> to = {};                 // instead of `factor`
  bool is_cropped = true;                       // to that size
  std::uint64_t max_input_pixels = kMaxPixels;  // of a picture that is read
};

void refuse_restoring(Fields& fields, const char* field, const char* what) {
  if (fields.number({field}).value_or(0) > 0)
    refuse(field, text_of("'", field, "' should be 0: there is no ", what, " here"));
}

Upscaling read_upscaling(Fields& fields, const RequestBounds& bounds) {
  refuse_restoring(fields, "gfpgan_visibility", "face restoration");
  refuse_restoring(fields, "codeformer_visibility", "face restoration");
  refuse_restoring(fields, "extras_upscaler_2_visibility", "second upscaler");
  Upscaling requested{.upscaler = fields.text("upscaler_1", kLongestName).value_or("None")};
  if (std::ranges::count(kUpscalers, requested.upscaler) == 0)
    refuse("upscaler_1", "there is no upscaler '" + requested.upscaler.substr(0, 100) +
                             "' here: there are None, Lanczos and Nearest");
  requested.factor = fields.number({"upscaling_resize"}).value_or(2);
  if (!(requested.factor > 0)) refuse("upscaling_resize", "'upscaling_resize' should be above 0");
  const auto side = [&](const char* name) {
    return int(fields.integer({name}, 1, 1 << 16).value_or(512));
  };
  const auto mode = fields.integer({"resize_mode"}, 0, 1).value_or(0);
  if (mode == 1)
    requested.to = {.width = side("upscaling_resize_w"), .height = side("upscaling_resize_h")};
  requested.is_cropped = fields.flag("upscaling_crop").value_or(true);
  requested.max_input_pixels = std::uint64_t(bounds.max_input_pixels);
  return requested;
}

// The size before it is cropped, as numbers that may be huge.
struct MadeSize {
  double width, height;
};
MadeSize made_size(const Upscaling& requested, double width, double height) {
  if (requested.upscaler == "None") return {width, height};
  const auto& to = requested.to;
  const auto factor = to ? std::max(to->width / width, to->height / height) : requested.factor;
  const auto side = [&](double pixels, int least) {
    const auto whole = std::max(1.0, std::floor(pixels * factor / kMultiple)) * kMultiple;
    return std::max(whole, double(least));
  };
  // What is cropped has to cover its size, which may be no multiple.
  const auto least = to && requested.is_cropped ? *to : Sides{.width = 1, .height = 1};
  return {side(width, least.width), side(height, least.height)};
}

// The web UI's "None" leaves the picture as it is, too.
Pixels upscaled(const Pixels& picture, const Upscaling& requested) {
  if (requested.upscaler == "None") return picture;
  const auto [width, height] = made_size(requested, picture.width, picture.height);
  const auto made = requested.upscaler == "Nearest"
                        ? resized_to_nearest(picture, int(width), int(height))
                        : resized(picture, int(width), int(height), Resampling::kLanczos);
  const auto& to = requested.to;
  if (!to || !requested.is_cropped) return made;
  return cropped(made, made.width / 2 - to->width / 2, made.height / 2 - to->height / 2, to->width,
                 to->height);
}

StoredSize size_in(const std::string& bytes) {
  try {
    return stored_size(bytes, "the image");
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), "invalid_image", "image");
  }
}

// Counts the pixels that all pictures of a request have, and those that are made of them, before
// decoding one costs time and memory.
class PixelsLeft {
 public:
  explicit PixelsLeft(const RequestBounds& bounds)
      : most_(bounds.max_input_pixels), read_(double(most_)), made_(double(most_)) {}

  // Reads the file's header only. Throws ApiError: 400 for what is no picture, 413 for too many
  // pixels.
  void take(const std::string& bytes, const Upscaling& requested) {
    const auto stored = size_in(bytes);
    const double width = double(stored.width), height = double(stored.height);
    read_ -= width * height;
    if (read_ < 0)
      refuse(text_of("the image has ", width, "x", height, " pixels"), "read", "image");
    const auto made = made_size(requested, width, height);
    made_ -= made.width * made.height;
    if (made_ < 0)
      refuse(text_of("the picture would become ", made.width, "x", made.height), "made",
             "upscaling_resize");
  }

 private:
  [[noreturn]] void refuse(const std::string& fact, const char* what, const char* field) const {
    throw ApiError(413,
                   text_of(fact, ", at most ", most_, " pixels are ", what,
                           " for all pictures of a request (--max-input-pixels)"),
                   "too_many_pixels", field);
  }

  std::int64_t most_;
  double read_, made_;
};

// One file's bytes to the other's, with what a PNG can hold of its text.
std::string upscaled_file(const std::string& bytes, const Upscaling& requested) {
  try {
    const auto picture = decode_picture(bytes, "the image", requested.max_input_pixels);
    const auto made = upscaled(picture, requested);
    return encode_png(made.width, made.height, made.rgb,
                      writable_text(readable_picture_text(bytes, "the image")));
  } catch (const InputError& error) {
    throw ApiError(400, error.what(), "invalid_image", "image");
  }
}

[[noreturn]] void refuse_missing(const char* name) {
  throw ApiError(400, text_of("there is no '", name, "'"), "missing_required_parameter", name);
}

std::string image_in(Fields& fields, const char* name) {
  auto files = fields.files(name);
  if (files.size() != 1) refuse_missing(name);
  return std::move(files.front().bytes);
}

Answer extra_single_image(const ApiContext& context, const HttpRequest& http,
                          const std::vector<std::string>&) {
  Fields fields(http.body);
  const auto requested = read_upscaling(fields, context.bounds);
  auto bytes = image_in(fields, "image");
  PixelsLeft(context.bounds).take(bytes, requested);
  return {.rest = [requested, bytes = std::move(bytes)] {
    return json_answer({{"html_info", ""}, {"image", base64(upscaled_file(bytes, requested))}});
  }};
}

struct Batch {
  Upscaling requested;
  std::vector<std::string> files = {};
  Json made = Json::array();  // of the first files, as base64
};

// One picture after another: other clients have their turn between them, and a client that leaves
// costs no further one.
Answer rest_of(const std::shared_ptr<Batch>& batch) {
  auto& [requested, files, made] = *batch;
  if (made.size() == files.size())
    return json_answer({{"html_info", ""}, {"images", std::move(made)}});
  return {.rest = [batch] {
    auto& file = batch->files[batch->made.size()];
    batch->made.push_back(base64(upscaled_file(file, batch->requested)));
    file = {};
    return rest_of(batch);
  }};
}

Answer extra_batch_images(const ApiContext& context, const HttpRequest& http,
                          const std::vector<std::string>&) {
  Fields fields(http.body);
  const auto batch =
      std::make_shared<Batch>(Batch{.requested = read_upscaling(fields, context.bounds)});
  if (!fields.has("imageList")) refuse_missing("imageList");
  PixelsLeft left(context.bounds);
  for (auto& one : fields.list("imageList", kMostImages)) {
    batch->files.push_back(image_in(one, "data"));
    left.take(batch->files.back(), batch->requested);
  }
  return rest_of(batch);
}

Answer upscalers(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  auto list = Json::array();
  for (const auto* const name : kUpscalers)
    list.push_back({{"name", name},
                    {"model_name", nullptr},
                    {"model_path", nullptr},
                    {"model_url", nullptr},
                    {"scale", 4}});
  return json_answer(list);
}

// Says what is not there.
Handler without(const char* what) {
  return [what](const ApiContext&, const HttpRequest&, const std::vector<std::string>&) -> Answer {
    throw ApiError(422, text_of("this server has ", what), "not_supported");
  };
}

}  // namespace

std::vector<Route> sdapi_extras_routes() {
  const std::string base = "/sdapi/v1/";
  const auto no_training = without("no training: it draws with files that are there");
  return {{"POST", base + "png-info", png_info},
          {"GET", base + "upscalers", upscalers},
          {"POST", base + "extra-single-image", extra_single_image},
          {"POST", base + "extra-batch-images", extra_batch_images},
          {"POST", base + "interrogate", without("no model that describes pictures")},
          {"POST", base + "create/embedding", no_training},
          {"POST", base + "create/hypernetwork", no_training},
          {"POST", base + "train/embedding", no_training},
          {"POST", base + "train/hypernetwork", no_training}};
}

}  // namespace braid::serve
