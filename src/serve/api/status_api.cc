// The server's state and capabilities.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "serve/api/api.h"
#include "serve/api_error.h"
#include "serve/body/loras.h"

namespace braid::serve {
namespace {

const char* readiness_name(Readiness readiness) {
  switch (readiness) {
    case Readiness::kLoading:
      return "loading";
    case Readiness::kReady:
      return "ready";
    case Readiness::kDraining:
      return "draining";
    case Readiness::kStopped:
      return "stopped";
  }
  return "";
}

Json status_json(const ApiContext& context) {
  const auto status = context.service.status();
  Json json = {{"status", readiness_name(status.readiness)},
               {"loaded", status.loaded},
               {"running", status.running},
               {"waiting", status.waiting},
               {"waiting_pictures", status.waiting_pictures},
               {"seconds_until_idle",
                status.seconds_until_idle ? Json(*status.seconds_until_idle) : Json()}};
  return json;
}

Answer livez(const ApiContext&, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer({{"status", "alive"}});
}

Answer readyz(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  const bool is_ready = context.service.status().readiness == Readiness::kReady;
  return json_answer(status_json(context), is_ready ? 200 : 503);
}

Answer status(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  return json_answer(status_json(context));
}

Answer metrics(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  const auto status = context.service.status();
  const auto text =
      context.service.metrics().text({.running = status.running,
                                      .waiting = status.waiting,
                                      .waiting_pictures = status.waiting_pictures,
                                      .connections = context.num_connections(),
                                      .is_ready = status.readiness == Readiness::kReady,
                                      .resident_bytes = resident_bytes()});
  return {.now = {.content_type = "text/plain; version=0.0.4; charset=utf-8", .body = text}};
}

const char* guidance_name(GuidanceKind kind) {
  switch (kind) {
    case GuidanceKind::kNone:
      return "none";
    case GuidanceKind::kEmbedded:
      return "embedded";
    case GuidanceKind::kEmbeddedOrTrue:
      return "embedded_or_true";
    case GuidanceKind::kTrue:
      return "true";
  }
  return "";
}

Json pictures_json(const Backend& backend) {
  const auto& p = backend.info.pictures;
  auto nets = Json::array();
  for (const auto& [name, modes] : backend.controlnets)
    nets.push_back({{"name", name}, {"modes", modes}});
  return {{"init", p.takes_init},
          {"mask", p.needs_mask   ? "needed"
                   : p.takes_mask ? "taken"
                                  : "none"},
          {"control", p.takes_control                  ? "needed"
                      : nets.empty() || p.net_fills_in ? "none"
                                                       : "taken"},
          {"controlnets", nets},
          {"controlnet_fills_in", p.net_fills_in},
          {"reference_scales", backend.has_redux},
          {"references", p.most_references},
          {"strength", p.strength},
          {"strength_with_mask", p.strength_with_mask}};
}

template <class Table>
Json names_json(const Table& table) {
  auto names = Json::array();
  for (const auto& [name, value] : table) names.push_back(name);
  return names;
}

// What a request has that leaves everything to the model: it may be sent back as it is.
Json defaults_json(const ModelInfo& info, const RequestBounds& bounds) {
  const auto size = default_size(info, bounds);
  Json json = {{"width", size.width},
               {"height", size.height},
               {"steps", std::min(info.steps, bounds.max_steps)},
               {"guidance", info.guidance},
               {"sampler", sampling_name(kSamplers, info.sampler)},
               {"schedule", "model"},
               {"max_sequence_length", info.max_sequence_length}};
  if (info.layers.most > 0) json["layers"] = info.layers.drawn;
  return json;
}

// Pages ask for this: defaults, ranges, and what the model's family can do.
Answer capabilities(const ApiContext& context, const HttpRequest& http,
                    const std::vector<std::string>&) {
  const auto& backends = context.service.backends();
  const auto& backend = backend_named(http.parameter("model"), backends);
  auto models = Json::array();
  for (const auto& one : backends) models.push_back(one.model);
  const auto& info = backend.info;
  const bool has_negative = info.guidance_kind == GuidanceKind::kEmbeddedOrTrue ||
                            info.guidance_kind == GuidanceKind::kTrue;
  return json_answer({{"model", backend.model},
                      {"models", std::move(models)},
                      {"family", info.family},
                      {"version", BRAID_VERSION},
                      {"guidance", guidance_name(info.guidance_kind)},
                      {"negative_prompt", has_negative},
                      {"second_prompt", info.num_texts > 1},
                      {"enhancer", bool(context.enhance)},
                      {"samplers", names_json(kSamplers)},
                      {"schedules", names_json(kSigmaSchedules)},
                      {"loras", backend.loras ? Json(lora_names(backend)) : Json()},
                      {"adapters", loras_json(backend.adapters)},
                      {"pictures_in", pictures_json(backend)},
                      {"defaults", defaults_json(info, context.bounds)},
                      {"resolutions", info.layers.resolutions},
                      {"limits",
                       {{"size_multiple", info.size_multiple},
                        {"largest_side", info.largest_side},
                        {"pixels", context.bounds.max_pixels},
                        {"steps", context.bounds.max_steps},
                        {"pictures", context.bounds.max_pictures},
                        {"input_pixels", context.bounds.max_input_pixels},
                        {"body_bytes", context.bounds.max_body_bytes},
                        {"frames", info.frames.most},
                        {"layers", info.layers.most},
                        {"max_sequence_length", info.max_text_tokens}}},
                      {"alpha", info.draws_alpha},
                      {"boxes", info.takes_boxes}});
}

}  // namespace

std::vector<Route> status_routes() {
  return {{"GET", "/livez", livez},      {"GET", "/readyz", readyz},
          {"GET", "/health", readyz},    {"GET", "/metrics", metrics},
          {"GET", "/v1/status", status}, {"GET", "/v1/capabilities", capabilities}};
}

}  // namespace braid::serve
