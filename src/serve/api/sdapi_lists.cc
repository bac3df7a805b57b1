// The endpoints of AUTOMATIC1111's web UI that say what there is and how far it is: models,
// settings, progress by polling, and lists that its clients ask for before they begin.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/control_group.h"
#include "base/error.h"
#include "base/json.h"
#include "image/web_ui_terms.h"
#include "serve/api/sdapi.h"
#include "serve/api_error.h"
#include "serve/body/loras.h"
#include "serve/body/sampling_fields.h"
#include "serve/body/web_ui_fields.h"

namespace braid::serve {
namespace {

constexpr const char* kCheckpoint = "sd_model_checkpoint";
constexpr std::size_t kMostTold = 20;  // settings in a line of the log

Json state_json(const std::string& job, int jobs, int number, int step, int steps) {
  return {{"skipped", false}, {"interrupted", false},  {"stopping_generation", false},
          {"job", job},       {"job_count", jobs},     {"job_timestamp", "0"},
          {"job_no", number}, {"sampling_step", step}, {"sampling_steps", steps}};
}

bool is_clients_own(const Job& job, const HttpRequest& http) {
  return job.order().client == http.client_address;
}

// Who has a job's id may read and cancel it, so others get the counters alone.
enum class Shown { kCounters, kJob, kJobAndImage };
Json progress_json(const Job* job, Shown shown) {
  Json json = {{"progress", 0.0},
               {"eta_relative", 0.0},
               {"state", state_json("", 0, 0, 0, 0)},
               {"current_image", nullptr},
               {"textinfo", nullptr}};
  if (!job) return json;
  const auto status = job->status();
  const int steps = std::max(status.steps, 1), pictures = job->num_pictures();
  const int ended = int(status.pictures.size()) + status.num_unfinished + status.num_skipped;
  const double done = ended + std::min(1.0, double(status.step) / steps);
  json["progress"] = std::min(0.99, done / pictures);
  json["eta_relative"] = status.eta.value_or(0);
  const auto id = shown == Shown::kCounters ? "" : job->id();
  json["state"] = state_json(id, pictures, ended, status.step, steps);
  json["state"]["interrupted"] = status.is_cancelling;
  json["state"]["job_timestamp"] = web_ui_time(status);
  if (shown != Shown::kJobAndImage) return json;
  for (const auto& event : job->events_after(0))
    if (event.name == "preview") json["current_image"] = base64(*event.file);
  return json;
}

Answer progress(const ApiContext& context, const HttpRequest& http,
                const std::vector<std::string>&) {
  const auto job = context.service.running();
  const bool has_image = !truth_of(http.parameter("skip_current_image")).value_or(false);
  const auto shown = !job || !is_clients_own(*job, http) ? Shown::kCounters
                     : has_image                         ? Shown::kJobAndImage
                                                         : Shown::kJob;
  return json_answer(progress_json(job.get(), shown));
}

// Nobody ends another's job.
std::shared_ptr<Job> own_running(const ApiContext& context, const HttpRequest& http) {
  auto job = context.service.running();
  return job && is_clients_own(*job, http) ? job : nullptr;
}

Answer interrupt(const ApiContext& context, const HttpRequest& http,
                 const std::vector<std::string>&) {
  if (const auto job = own_running(context, http)) context.service.cancel(job);
  return json_answer(Json::object());
}

// Ends the picture that is being drawn.
Answer skip(const ApiContext& context, const HttpRequest& http, const std::vector<std::string>&) {
  if (const auto job = own_running(context, http)) job->request_skip();
  return json_answer(Json::object());
}

Answer options(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"sd_model_checkpoint", chosen_in_web_ui(context).model},
                      {"sd_checkpoint_hash", nullptr},
                      {"sd_vae", "Automatic"},
                      {"samples_format", "png"}});
}

// The answer has no room for warnings: they go to the log, in one line.
void warn_of_options(const ApiContext& context, const Fields& options) {
  Fields around(json_line({{"override_settings", options.json()}}), UnknownFields::kWarnedOf);
  (void)around.has("override_settings");  // a field that is read
  warn_of_unused_choices(around);
  const auto& warnings = around.warnings();
  if (warnings.empty()) return;
  std::string all = "POST /sdapi/v1/options: ";
  for (std::size_t i = 0; i < std::min(warnings.size(), kMostTold); ++i)
    all += (i > 0 ? "; " : "") + warnings[i];
  if (warnings.size() > kMostTold) all += text_of("; and ", warnings.size() - kMostTold, " more");
  context.service.warn(all);
}

Answer set_options(const ApiContext& context, const HttpRequest& http,
                   const std::vector<std::string>&) {
  Fields options(http.body);
  const auto model = options.text(kCheckpoint, kLongestModel).value_or("");
  const auto& backends = context.service.backends();
  if (!model.empty())
    *context.web_ui_model =
        std::size_t(&backend_named(model, backends, kCheckpoint) - backends.data());
  warn_of_options(context, options);
  return json_answer(nullptr);
}

Answer samplers(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  auto entries = Json::array();
  for (const auto& [name, sampler] : kSamplers)
    entries.push_back({{"name", web_ui_label(sampler)},
                       {"aliases", Json::array({name})},
                       {"options", Json::object()}});
  return json_answer(entries);
}

Answer schedulers(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  auto entries = Json::array();
  for (const auto& [name, schedule] : kSigmaSchedules) {
    const bool is_own = schedule == SigmaSchedule::kModel;
    entries.push_back({{"name", is_own ? "automatic" : name},
                       {"label", web_ui_label(schedule)},
                       {"aliases", is_own ? Json::array({"model", "normal"}) : Json()},
                       {"default_rho", -1.0},
                       {"need_inner_model", false}});
  }
  return json_answer(entries);
}

Answer sd_models(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  auto models = Json::array();
  for (const auto& backend : context.service.backends())
    models.push_back({{"title", backend.model},
                      {"model_name", backend.model},
                      {"hash", nullptr},
                      {"sha256", nullptr},
                      {"filename", backend.model},
                      {"config", nullptr}});
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

Answer nothing_to_do(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(nullptr);  // files that are added later are found without it
}

Answer ping(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(Json::object());
}

// The next request loads its model again.
Answer unload(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  context.service.require_ready();
  if (!context.service.release_models())
    throw ApiError(422, "this server keeps its model: its ranks are processes", "not_supported");
  return json_answer(Json::object());
}

Answer memory(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  const auto total = usable_memory(), used = std::min(resident_bytes(), total);
  return json_answer({{"ram", {{"free", total - used}, {"used", used}, {"total", total}}},
                      {"cuda", {{"error", "this server does not report its devices' memory"}}}});
}

Answer cmd_flags(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"api", true}, {"nowebui", true}, {"ckpt", chosen_in_web_ui(context).model}});
}

Answer scripts(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"txt2img", Json::array()}, {"img2img", Json::array()}});
}

Answer embeddings(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"loaded", Json::object()}, {"skipped", Json::object()}});
}

}  // namespace

std::vector<Route> sdapi_list_routes() {
  const std::string base = "/sdapi/v1/";
  std::vector<Route> routes = {{"GET", base + "progress", progress},
                               {"POST", base + "interrupt", interrupt},
                               {"POST", base + "skip", skip},
                               {"GET", base + "options", options},
                               {"POST", base + "options", set_options},
                               {"GET", base + "samplers", samplers},
                               {"GET", base + "schedulers", schedulers},
                               {"GET", base + "sd-models", sd_models},
                               {"GET", base + "loras", loras},
                               {"GET", base + "memory", memory},
                               {"GET", base + "cmd-flags", cmd_flags},
                               {"GET", base + "scripts", scripts},
                               {"GET", base + "embeddings", embeddings},
                               {"POST", base + "unload-checkpoint", unload},
                               {"GET", "/internal/ping", ping}};
  for (const auto* const list :
       {"latent-upscale-modes", "sd-vae", "sd-modules", "hypernetworks", "face-restorers",
        "realesrgan-models", "prompt-styles", "script-info", "extensions"})
    routes.push_back({"GET", base + list, no_entries});
  for (const auto* const what : {"refresh-checkpoints", "refresh-loras", "refresh-vae",
                                 "refresh-embeddings", "reload-checkpoint"})
    routes.push_back({"POST", base + what, nothing_to_do});
  return routes;
}

}  // namespace braid::serve
