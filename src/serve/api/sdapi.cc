// AUTOMATIC1111's web UI endpoints, as far as its clients use them: pictures as base64 in JSON,
// settings as JSON in a string, progress by polling.
#include <cmath>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "image/parameters.h"
#include "image/picture_file.h"
#include "serve/api/take_order.h"
#include "serve/api_error.h"
#include "serve/body/loras.h"
#include "serve/body/picture_options.h"
#include "serve/body/web_ui_fields.h"

namespace braid::serve {
namespace {

// The only sampler. Clients may name any: those of other engines mean nothing here.
constexpr const char* kSampler = "Euler";

const Backend& chosen_in_web_ui(const ApiContext& context) {
  return context.service.backends().at(*context.web_ui_model);
}

// The model of the request's override, else the one chosen for all.
const Backend& web_ui_backend(const ApiContext& context, Fields& fields) {
  if (!fields.has("override_settings")) return chosen_in_web_ui(context);
  const auto& settings = fields.json().at("override_settings");
  if (!settings.is_object()) refuse("override_settings", "'override_settings' should be an object");
  const auto name = settings.find("sd_model_checkpoint");
  if (name == settings.end() || name->is_null()) return chosen_in_web_ui(context);
  if (!name->is_string())
    refuse("override_settings", "'sd_model_checkpoint' should be the name of a model");
  return backend_named(name->get<std::string>(), context.service.backends());
}

// cfg_scale is the model's own guidance scale; a negative prompt is used only with true guidance.
Request read_txt2img(Fields& fields, const Backend& backend, const RequestBounds& bounds) {
  Request request;
  auto prompt = fields.text("prompt", 32'000).value_or("");
  apply_loras(take_loras(prompt), backend, request);
  request.prompts = {prompt};
  const auto negative = fields.text("negative_prompt", 32'000).value_or("");
  const auto kind = backend.info.guidance_kind;
  if (!negative.empty() && kind == GuidanceKind::kTrue) request.negative_prompt = negative;
  const auto multiple = backend.info.size_multiple;
  const auto side = [&](const char* name) -> std::optional<int> {
    const auto pixels = fields.integer({name}, multiple, backend.info.largest_side);
    return pixels ? std::optional(int(*pixels / multiple * multiple)) : std::nullopt;
  };
  request.width = side("width");
  request.height = side("height");
  if (const auto steps = fields.integer({"steps"}, 1, bounds.max_steps))
    request.steps = int(*steps);
  request.guidance = fields.number({"cfg_scale", "distilled_cfg_scale"});
  const auto batch = fields.integer({"batch_size"}, 1, bounds.max_pictures).value_or(1);
  const auto rounds = fields.integer({"n_iter"}, 1, bounds.max_pictures).value_or(1);
  if (batch * rounds > bounds.max_pictures)
    refuse("n_iter", text_of("a request may ask for at most ", bounds.max_pictures,
                             " pictures, this one asks for ", batch * rounds));
  request.num_images = int(batch * rounds);
  request.seed = fields.seed().value_or(random_seed());
  (void)fields.text("sampler_name", 1000);
  return request;
}

Json parameters_json(const Request& r) {
  return {{"prompt", r.prompts.front()},
          {"negative_prompt", r.negative_prompt.value_or("")},
          {"width", *r.width},
          {"height", *r.height},
          {"steps", *r.steps},
          {"cfg_scale", *r.guidance},
          {"seed", r.seed},
          {"batch_size", r.num_images},
          {"n_iter", 1},
          {"sampler_name", kSampler}};
}

HttpResponse sdapi_result(const Job& job, const std::string& model) {
  const auto status = job.status();
  if (status.state == JobState::kFailed || status.cause == Cause::kStop)
    return error_response(error_of(status));
  std::string images;
  auto seeds = Json::array();
  for (const auto& picture : status.pictures) {
    images += images.empty() ? "\"" : ",\"";
    add_base64(images, *picture.file);
    images += '"';
    seeds.push_back(picture.seed);
  }
  const auto parameters = parameters_json(job.order().request);
  auto info = parameters;
  info["all_seeds"] = std::move(seeds);
  info["sd_model_name"] = model;
  Json rest = {{"parameters", parameters},
               {"info", info.dump(-1, ' ', false, Json::error_handler_t::replace)}};
  if (!job.order().warnings.empty()) rest["warnings"] = job.order().warnings;
  return {.body = with_member("images", "[" + images + "]", rest)};
}

// Other engines have many fields; unknown ones are ignored.
enum class Brings { kNothing, kPictures };
Answer make_sdapi_pictures(const ApiContext& context, const HttpRequest& http, Brings brings) {
  context.service.require_room();
  Fields fields(http.body);
  const auto& backend = web_ui_backend(context, fields);
  refuse_missing_features(fields);
  auto request = read_txt2img(fields, backend, context.bounds);
  UndecodedPictures brought(context.bounds);
  std::function<void(Request&)> adjust;
  if (brings == Brings::kPictures) {
    brought = read_sdapi_pictures(fields, backend.info, context.bounds);
    adjust = read_sdapi_options(fields, request, brought.settings(), context.bounds);
  }
  ClientOrder wish{.order = {.backend = &backend,
                             .request = std::move(request),
                             .client = http.client_address,
                             .warnings = unused_choices(fields, backend),
                             .has_previews = true},
                   .brought = std::move(brought),
                   .adjust = std::move(adjust)};
  return take_order(
      context, std::move(wish), [&context, &backend](const std::shared_ptr<Job>& job) {
        return Answer{
            .job = job,
            .when_ended =
                [&backend](const Job& ended) { return sdapi_result(ended, backend.model); },
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

Json progress_json(const Job* job, bool has_image) {
  Json json = {
      {"progress", 0.0},
      {"eta_relative", 0.0},
      {"state", {{"job", ""}, {"job_count", 0}, {"sampling_step", 0}, {"sampling_steps", 0}}},
      {"current_image", nullptr},
      {"textinfo", nullptr}};
  if (!job) return json;
  const auto status = job->status();
  const int steps = *job->order().request.steps, pictures = job->num_pictures();
  const double done = double(status.pictures.size()) + std::min(1.0, double(status.step) / steps);
  json["progress"] = std::min(0.99, done / pictures);
  json["eta_relative"] = status.eta.value_or(0);
  json["state"] = {{"job", job->id()},
                   {"job_count", pictures},
                   {"job_no", status.pictures.size()},
                   {"sampling_step", status.step},
                   {"sampling_steps", steps}};
  for (const auto& event : job->events_after(0))
    if (has_image && event.name == "preview") json["current_image"] = base64(*event.file);
  return json;
}

Answer progress(const ApiContext& context, const HttpRequest& http,
                const std::vector<std::string>&) {
  const auto job = context.service.running();
  return json_answer(progress_json(job.get(), http.parameter("skip_current_image") != "true"));
}

// Interrupts the running job only if it came from the same address.
Answer interrupt(const ApiContext& context, const HttpRequest& http,
                 const std::vector<std::string>&) {
  const auto job = context.service.running();
  if (job && job->order().client == http.client_address) context.service.cancel(job);
  return json_answer(Json::object());
}

Answer options(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"sd_model_checkpoint", chosen_in_web_ui(context).model}});
}

Answer set_options(const ApiContext& context, const HttpRequest& http,
                   const std::vector<std::string>&) {
  Fields fields(http.body);
  const auto& backends = context.service.backends();
  if (const auto model = fields.text("sd_model_checkpoint", 1000))
    *context.web_ui_model = std::size_t(&backend_named(*model, backends) - backends.data());
  return json_answer(nullptr);
}

Answer samplers(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(
      Json::array({{{"name", kSampler}, {"aliases", {"euler"}}, {"options", Json::object()}}}));
}

Answer schedulers(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(Json::array({{{"name", "simple"}, {"label", "Simple"}}}));
}

Answer sd_models(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  auto models = Json::array();
  for (const auto& backend : context.service.backends())
    models.push_back({{"title", backend.model},
                      {"model_name", backend.model},
                      {"hash", nullptr},
                      {"filename", backend.model}});
  return json_answer(models);
}

Answer loras(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  auto entries = Json::array();
  for (const auto& name : lora_names(chosen_in_web_ui(context)))
    entries.push_back(
        {{"name", name}, {"alias", name}, {"path", name}, {"metadata", Json::object()}});
  return json_answer(entries);
}

Answer no_entries(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(Json::array());
}

// The text in a picture's file, in these clients' form and as key-value items.
Answer png_info(const ApiContext&, const HttpRequest& http, const std::vector<std::string>&) {
  Fields fields(http.body);
  const auto image = fields.text("image", std::size_t(32) << 20).value_or("");
  PngText text;
  try {
    text = read_picture_text(bytes_of_base64(image, "image"), "the image");
  } catch (const InputError& error) {
    refuse("image", error.what());
  }
  Json items = Json::object();
  for (const auto& [key, value] : text) items[key] = value;
  return json_answer({{"info", parameters_of(text)}, {"items", items}, {"parameters", items}});
}

}  // namespace

std::vector<Route> sdapi_routes() {
  const std::string base = "/sdapi/v1/";
  return {{"POST", base + "txt2img", txt2img},
          {"POST", base + "img2img", img2img},
          {"GET", base + "progress", progress},
          {"POST", base + "interrupt", interrupt},
          {"POST", base + "skip", interrupt},
          {"GET", base + "options", options},
          {"POST", base + "options", set_options},
          {"GET", base + "samplers", samplers},
          {"GET", base + "schedulers", schedulers},
          {"GET", base + "sd-models", sd_models},
          {"GET", base + "loras", loras},
          {"GET", base + "upscalers", no_entries},
          {"GET", base + "latent-upscale-modes", no_entries},
          {"GET", base + "sd-vae", no_entries},
          {"POST", base + "png-info", png_info}};
}

}  // namespace braid::serve
