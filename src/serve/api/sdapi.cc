// AUTOMATIC1111's and Forge's endpoints that make pictures: they come as base64 in JSON, their
// settings as JSON in a string.
#include <time.h>

#include <array>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "image/parameters.h"
#include "image/picture_file.h"
#include "image/web_ui_terms.h"
#include "serve/api/sdapi.h"
#include "serve/api/sdapi_overlay.h"
#include "serve/api/take_order.h"
#include "serve/api_error.h"
#include "serve/body/loras.h"
#include "serve/body/picture_options.h"
#include "serve/body/sampling_fields.h"
#include "serve/body/web_ui_fields.h"

namespace braid::serve {
namespace {

// The model of the request's override, else the one chosen for all.
const Backend& web_ui_backend(const ApiContext& context, Fields& fields) {
  if (!fields.has("override_settings")) return chosen_in_web_ui(context);
  const auto& settings = fields.json().at("override_settings");
  if (!settings.is_object()) refuse("override_settings", "'override_settings' should be an object");
  const auto name = settings.find("sd_model_checkpoint");
  if (name == settings.end() || name->is_null()) return chosen_in_web_ui(context);
  if (!name->is_string())
    refuse("override_settings", "'sd_model_checkpoint' should be the name of a model");
  return backend_named(name->get<std::string>(), context.service.backends(), "override_settings");
}

// Sliders of these clients have steps of 8.
std::optional<int> read_side(Fields& fields, const char* name, const ModelInfo& info) {
  const int multiple = info.size_multiple;
  const auto pixels = fields.integer({name}, multiple, info.largest_side);
  if (!pixels) return {};
  const int rounded = int(*pixels) / multiple * multiple;
  if (rounded != *pixels)
    fields.warn(text_of("the ", name, " ", *pixels, " is rounded down to ", rounded,
                        ", a multiple of ", multiple));
  return rounded;
}

// As many pictures as both together, one after the other.
struct Batches {
  std::int64_t size = 1, rounds = 1;
  int num_pictures() const { return int(size * rounds); }
};

Batches read_batches(Fields& fields, const RequestBounds& bounds) {
  const Batches batches{.size = fields.integer({"batch_size"}, 1, bounds.max_pictures).value_or(1),
                        .rounds = fields.integer({"n_iter"}, 1, bounds.max_pictures).value_or(1)};
  if (batches.num_pictures() > bounds.max_pictures)
    refuse("n_iter", text_of("a request may ask for at most ", bounds.max_pictures,
                             " pictures, this one asks for ", batches.num_pictures()));
  return batches;
}

Request read_txt2img(Fields& fields, const Backend& backend, const RequestBounds& bounds) {
  Request request;
  auto prompt = fields.text("prompt", kLongestPrompt).value_or("");
  apply_loras(take_loras(prompt), backend, request);
  request.prompts = {prompt};
  read_web_ui_guidance(fields, backend, request);
  request.width = read_side(fields, "width", backend.info);
  request.height = read_side(fields, "height", backend.info);
  if (const auto steps = fields.integer({"steps"}, 1, bounds.max_steps))
    request.steps = int(*steps);
  request.seed = fields.seed().value_or(random_seed());
  read_web_ui_sampling(fields, request.sampling);
  return request;
}

Sampler sampler_of(const Request& r, const Backend& backend) {
  return r.sampling.sampler.value_or(backend.info.sampler);
}

SigmaSchedule schedule_of(const Request& r) {
  return r.sampling.schedule.value_or(SigmaSchedule::kModel);
}

// What was taken, in the web UI's words and in our own.
Json parameters_json(const Request& r, const Batches& batches, const Backend& backend) {
  const auto scales = web_ui_scales(r, backend);
  Json json = {{"prompt", r.prompts.front()},
               {"negative_prompt", r.negative_prompt.value_or("")},
               {"width", *r.width},
               {"height", *r.height},
               {"steps", *r.steps},
               {"cfg_scale", scales.cfg},
               {"guidance", *r.guidance},
               {"true_cfg", r.true_cfg},
               {"seed", r.seed},
               {"batch_size", batches.size},
               {"n_iter", batches.rounds},
               {"sampler_name", web_ui_label(sampler_of(r, backend))},
               {"scheduler", web_ui_label(schedule_of(r))}};
  if (scales.distilled) json["distilled_cfg_scale"] = *scales.distilled;
  json["denoising_strength"] = r.pictures.strength ? Json(*r.pictures.strength) : Json();
  return json;
}

// The settings of all pictures, and of each: all that the web UI's Processed.js() tells, as clients
// may require it.
Json info_json(Json info, const Request& request, const Job::Status& status,
               const Backend& backend) {
  const auto& pictures = status.pictures;
  auto seeds = Json::array(), texts = Json::array();
  for (const auto& picture : pictures) {
    seeds.push_back(picture.seed);
    texts.push_back(parameters_of(read_picture_text(*picture.file, "the picture")));
  }
  info.update({{"all_prompts", std::vector(pictures.size(), info["prompt"])},
               {"all_negative_prompts", std::vector(pictures.size(), info["negative_prompt"])},
               {"all_seeds", seeds},
               {"subseed", request.seed},
               {"all_subseeds", seeds},
               {"subseed_strength", 0},
               {"seed_resize_from_w", -1},
               {"seed_resize_from_h", -1},
               {"restore_faces", false},
               {"face_restoration_model", nullptr},
               {"sd_model_name", backend.model},
               {"sd_model_hash", ""},
               {"sd_vae_name", nullptr},
               {"sd_vae_hash", nullptr},
               {"extra_generation_params", Json::object()},
               {"index_of_first_image", 0},
               {"infotexts", std::move(texts)},
               {"styles", Json::array()},
               {"job_timestamp", web_ui_time(status)},
               {"clip_skip", 1},
               {"is_using_inpainting_conditioning", false},
               {"version", "braid " BRAID_VERSION}});
  return info;
}

// What an answer tells beside the job.
struct Told {
  Batches batches;
  bool sends_images = true;
};

// Such an answer looks like one of fewer pictures.
std::string interruption_text(const Job& job, std::size_t made) {
  return text_of("interrupted: ", made, " of ", job.num_pictures(), " pictures ",
                 made == 1 ? "was" : "were", " drawn");
}

HttpResponse sdapi_result(const Job& job, const Backend& backend, const Told& told) {
  auto status = job.status();
  if (status.state == JobState::kFailed || status.cause == Cause::kStop)
    return error_response(error_of(status));
  if (status.state == JobState::kCancelled)
    status.warnings.push_back(interruption_text(job, status.pictures.size()));
  std::string images;
  for (const auto& picture : status.pictures) {
    if (!told.sends_images) break;
    images += images.empty() ? "\"" : ",\"";
    append_base64(images, *picture.file);
    images += '"';
  }
  const auto& request = job.order().request;
  const auto parameters = parameters_json(request, told.batches, backend);
  auto info = info_json(parameters, request, status, backend);
  if (!status.warnings.empty()) info["warnings"] = status.warnings;  // Python's webuiapi drops ours
  Json rest = {{"parameters", parameters}, {"info", json_line(info)}};
  if (!status.warnings.empty()) rest["warnings"] = status.warnings;
  return {.body = with_member("images", "[" + images + "]", rest)};
}

// Other engines have many fields; unknown ones are warned of.
enum class Brings { kNothing, kPictures };
Answer make_sdapi_pictures(const ApiContext& context, const HttpRequest& http, Brings brings) {
  context.service.require_room();
  Fields fields(http.body, UnknownFields::kWarnedOf);
  const auto& backend = web_ui_backend(context, fields);
  refuse_missing_features(fields);
  auto request = read_txt2img(fields, backend, context.bounds);
  Told told{.batches = read_batches(fields, context.bounds)};
  request.num_images = told.batches.num_pictures();
  auto brought = brings == Brings::kPictures
                     ? read_sdapi_pictures(fields, backend.info, context.bounds)
                     : read_sdapi_references(fields, backend.info, context.bounds);
  std::function<void(Request&)> adjust;
  std::function<void(Picture&, const PicturesIn&)> finish;
  if (brings == Brings::kPictures) {
    const auto unfilled = std::make_shared<Pixels>();
    adjust = read_sdapi_options(fields, request, brought.settings(), context.bounds, unfilled);
    finish = [unfilled](Picture& drawn, const PicturesIn& in) {
      lay_over_kept_part(drawn, in, *unfilled);
    };
  }
  const bool is_enhanced = reads_enhance(fields, context);
  told.sends_images = is_on(fields, "send_images", true);
  warn_of_unused_choices(fields);
  ClientOrder requested{.order = {.backend = &backend,
                                  .request = std::move(request),
                                  .client = http.client_address,
                                  .warnings = fields.warnings(),
                                  .sent = fields.names(),
                                  .finish = std::move(finish),
                                  .has_previews = true},
                        .brought = std::move(brought),
                        .adjust = std::move(adjust),
                        .is_enhanced = is_enhanced};
  return take_order(
      context, std::move(requested), [&context, &backend, told](const std::shared_ptr<Job>& job) {
        return Answer{
            .job = job,
            .when_ended = [&backend,
                           told](const Job& ended) { return sdapi_result(ended, backend, told); },
            .when_gone = [&context, job] { context.service.cancel(job); }};
      });
}

Answer txt2img(const ApiContext& context, const HttpRequest& http,
               const std::vector<std::string>&) {
  return make_sdapi_pictures(context, http, Brings::kNothing);
}

Answer img2img(const ApiContext& context, const HttpRequest& http,
               const std::vector<std::string>&) {
  return make_sdapi_pictures(context, http, Brings::kPictures);
}

}  // namespace

std::string web_ui_time(const Job::Status& status) {
  if (!status.started) return "0";
  const auto now = std::chrono::system_clock::now();
  const auto ago = std::chrono::floor<std::chrono::seconds>(Clock::now() - *status.started);
  const auto began = std::chrono::system_clock::to_time_t(now - ago);
  std::tm parts{};
  ::localtime_r(&began, &parts);
  std::array<char, 16> text{};
  return {text.data(), std::strftime(text.data(), text.size(), "%Y%m%d%H%M%S", &parts)};
}

const Backend& chosen_in_web_ui(const ApiContext& context) {
  return context.service.backends().at(*context.web_ui_model);
}

std::vector<Route> sdapi_routes() {
  return {{"POST", "/sdapi/v1/txt2img", txt2img, Asks::kPictures},
          {"POST", "/sdapi/v1/img2img", img2img, Asks::kPictures}};
}

}  // namespace braid::serve
