// Jobs: requests that are answered at once and polled later.
#include <algorithm>
#include <charconv>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/utf8.h"
#include "serve/api/take_order.h"
#include "serve/api_error.h"
#include "serve/body/loras.h"

namespace braid::serve {
namespace {

constexpr std::size_t kListedCharacters = 200;  // of each prompt, in lists
constexpr std::size_t kListedHere = 16;         // jobs whose list other clients can wait for

// What a job's answer shows of a prompt.
using ShownPrompt = std::function<std::string(const std::string& prompt)>;

std::string whole_prompt(const std::string& prompt) { return prompt; }

std::string prompt_beginning(const std::string& prompt) {
  std::size_t end = 0;
  for (std::size_t i = 0; i < kListedCharacters && end < prompt.size(); ++i)
    end += decode_utf8(prompt, end).size;
  return end == prompt.size() ? prompt : prompt.substr(0, end) + "\u2026";
}

double seconds_from(Clock::time_point from, std::optional<Clock::time_point> to) {
  return std::chrono::duration<double>(to.value_or(Clock::now()) - from).count();
}

Json picture_json(const std::string& prefix, const Job& job, std::size_t number,
                  const MadePicture& picture) {
  auto json = made_json(picture);
  json["url"] = text_of(prefix, "/v1/jobs/", job.id(), "/pictures/", number);
  return json;
}

// Names only: the client has the contents.
Json files_json(const std::vector<InputFile>& files) {
  auto json = Json::array();
  for (const auto& file : files)
    json.push_back({{"role", file.role}, {"name", file.name}, {"sha256", file.sha256}});
  return json;
}

void add_sampling(Json& json, const Sampling& s) {
  if (s.sampler) json["sampler"] = sampling_name(kSamplers, *s.sampler);
  if (s.schedule) json["schedule"] = sampling_name(kSigmaSchedules, *s.schedule);
  if (!s.sigmas.empty()) json["sigmas"] = s.sigmas;
  if (!s.base_sigmas.empty()) json["base_sigmas"] = s.base_sigmas;
  if (s.shift) json["shift"] = *s.shift;
}

// What differs from a request that says nothing of guidance.
void add_guidance(Json& json, const Request& r) {
  const Request plain;
  if (r.true_cfg != plain.true_cfg) json["true_cfg"] = r.true_cfg;
  if (r.guidance_rescale != plain.guidance_rescale) json["guidance_rescale"] = r.guidance_rescale;
  if (r.cfg_norm_cap != plain.cfg_norm_cap) json["cfg_norm_cap"] = r.cfg_norm_cap;
  if (r.cfg_normalize) json["cfg_normalize"] = *r.cfg_normalize;
  if (r.cfg_until != plain.cfg_until) json["cfg_until"] = r.cfg_until;
}

Json request_json(const Order& order, const ShownPrompt& shown) {
  const auto& r = order.request;
  Json json = {{"prompt", shown(r.prompts.front())},
               {"n", r.num_images},
               {"width", *r.width},
               {"height", *r.height},
               {"steps", *r.steps},
               {"guidance", *r.guidance},
               {"seed", r.seed},
               {"max_sequence_length", *r.max_sequence_length}};
  if (r.frames.value_or(1) != 1) json["frames"] = *r.frames;
  if (r.layers) json["layers"] = *r.layers;
  if (r.pictures.resolution) json["resolution"] = *r.pictures.resolution;
  if (r.pictures.strength) json["strength"] = *r.pictures.strength;
  add_guidance(json, r);
  add_sampling(json, r.sampling);
  if (!order.original_prompt.empty()) json["original_prompt"] = shown(order.original_prompt);
  if (!r.prompts_2.empty()) json["prompt_2"] = shown(r.prompts_2.front());
  if (r.negative_prompt) json["negative_prompt"] = shown(*r.negative_prompt);
  if (r.negative_prompt_2) json["negative_prompt_2"] = shown(*r.negative_prompt_2);
  if (!r.boxes.empty()) json["boxes"] = shown(r.boxes);
  if (r.adapters) json["lora"] = loras_json(*r.adapters);
  return json;
}

// `prefix` is the client's way to this server.
Json job_json(const Service& service, const std::string& prefix, const Job& job,
              const ShownPrompt& shown = whole_prompt) {
  const auto status = job.status();
  const auto left_queue = status.started ? status.started : status.finished;
  auto pictures = Json::array();
  for (std::size_t i = 0; i < status.pictures.size(); ++i)
    pictures.push_back(picture_json(prefix, job, i, status.pictures[i]));
  Json json = {{"id", job.id()},
               {"state", state_name(status.state)},
               {"cancelling", status.is_cancelling && !is_final(status.state)},
               {"model", (job.order().backend ? *job.order().backend : service.backend()).model},
               {"request", request_json(job.order(), shown)},
               {"pictures", std::move(pictures)},
               {"pictures_in", files_json(job.order().files)},
               {"seconds_queued", seconds_from(job.accepted(), left_queue)}};
  if (status.state == JobState::kQueued) {
    json["jobs_before"] = service.jobs_before(job);
    const auto seconds = service.seconds_until_start(job);
    json["seconds_until_start"] = seconds ? Json(*seconds) : Json();
  }
  if (status.started) json["seconds"] = seconds_from(*status.started, status.finished);
  if (status.state == JobState::kRunning) {
    json["phase"] = status.phase;
    json["step"] = status.step;
    json["eta"] = status.eta ? Json(*status.eta) : Json();
  }
  if (!status.error.empty()) json["error"] = status.error;
  if (!status.warnings.empty()) json["warnings"] = status.warnings;
  return json;
}

// A list has the beginnings of prompts: together they may be megabytes.
Json listed_json(const Service& service, const std::string& prefix, const Job& job) {
  bool is_cut = false;
  auto json = job_json(service, prefix, job, [&](const std::string& prompt) {
    auto beginning = prompt_beginning(prompt);
    is_cut = is_cut || beginning != prompt;
    return beginning;
  });
  if (is_cut) json["prompts_cut"] = true;
  return json;
}

std::shared_ptr<Job> job_named(const ApiContext& context, const std::string& id) {
  if (auto job = context.service.find(id)) return job;
  throw ApiError(404, "there is no such job: it ended long ago, or before the server was restarted",
                 "job_not_found");
}

Answer post_job(const ApiContext& context, const HttpRequest& http,
                const std::vector<std::string>&) {
  context.service.require_room();
  auto fields = fields_of(http, context);
  const auto& backend = read_model(fields, context.service.backends());
  auto request = read_picture_fields(fields, backend, context.bounds);
  const auto user = read_user(fields);
  const auto form = read_file_form(fields, backend.info);
  const bool has_previews = fields.flag("previews").value_or(false);
  const bool is_enhanced = reads_enhance(fields, context);
  auto brought = read_own_pictures(fields, backend.info, context.bounds);
  fields.finish();
  Order order{.backend = &backend,
              .request = std::move(request),
              .client = client_of(http, user),
              .warnings = fields.warnings(),
              .sent = fields.names(),
              .form = form,
              .is_kept = true,
              .has_previews = has_previews};
  return take_order(
      context,
      {.order = std::move(order), .brought = std::move(brought), .is_enhanced = is_enhanced},
      [&context, prefix = http.prefix](const std::shared_ptr<Job>& job) {
        auto answer = json_answer(job_json(context.service, prefix, *job), 202);
        answer.now.headers.emplace_back("location", prefix + "/v1/jobs/" + job->id());
        return answer;
      });
}

Answer list_jobs(const ApiContext& context, const HttpRequest& http,
                 const std::vector<std::string>&) {
  auto jobs = context.service.jobs_of(client_of(http, http.parameter("user")));
  const bool is_short = jobs.size() <= kListedHere;
  auto list = [&context, prefix = http.prefix, jobs = std::move(jobs)]() -> Answer {
    auto listed = Json::array();
    for (const auto& job : jobs) listed.push_back(listed_json(context.service, prefix, *job));
    return json_answer({{"jobs", std::move(listed)}});
  };
  if (is_short) return list();
  return {.rest = std::move(list)};
}

Answer get_job(const ApiContext& context, const HttpRequest& http,
               const std::vector<std::string>& parts) {
  return json_answer(job_json(context.service, http.prefix, *job_named(context, parts.front())));
}

Answer cancel_job(const ApiContext& context, const HttpRequest& http,
                  const std::vector<std::string>& parts) {
  const auto job = job_named(context, parts.front());
  context.service.cancel(job);
  return json_answer(job_json(context.service, http.prefix, *job));
}

// `param` is empty for a part of the path.
std::uint64_t number_in(const std::string& text, const std::string& name,
                        const std::string& param) {
  std::uint64_t number = 0;
  const auto* const end = text.data() + text.size();
  const auto parsed = std::from_chars(text.data(), end, number);
  if (parsed.ec != std::errc() || parsed.ptr != end)
    refuse(param, name + " should be a whole number, it is '" + text.substr(0, 100) + "'");
  return number;
}

// Pictures are fetched by URL; previews travel inside their event, as they are stored nowhere.
std::string job_event(const Event& event) {
  if (event.name != "preview") return event_text(event.name, event.data, event.id);
  auto data = Json::parse(event.data);
  data["b64_json"] = base64(*event.file);
  return event_text(event.name, data.dump(), event.id);
}

Answer job_events(const ApiContext& context, const HttpRequest& http,
                  const std::vector<std::string>& parts) {
  const auto last = http.header("last-event-id");
  const auto after = last.empty() ? http.parameter("after") : last;
  const std::string param = last.empty() ? "after" : "last-event-id";
  const auto number = after.empty() ? 0 : number_in(after, "'" + param + "'", param);
  auto job = job_named(context, parts.front());
  // A browser's EventSource returns after each end of a stream, unless it hears 204.
  if (!last.empty() && is_final(job->status().state) && job->events_after(number).empty())
    return {.now = {.status = 204}};
  const auto newest = job->events_after(0).back().id;  // whoever claims more still hears the end
  return {.job = std::move(job), .on_event = job_event, .after_event = std::min(number, newest)};
}

// Its address is a secret that clients may pass on: jobs' ids cannot be guessed.
bool is_made_picture(const ApiContext& context, const std::vector<std::string>& parts) {
  const auto job = context.service.find(parts[0]);
  return job && number_in(parts[1], "the picture's number", "") < job->status().pictures.size();
}

Answer job_picture(const ApiContext& context, const HttpRequest& http,
                   const std::vector<std::string>& parts) {
  const auto job = job_named(context, parts[0]);
  const auto pictures = job->status().pictures;
  const auto number = number_in(parts[1], "the picture's number", "");
  if (number >= pictures.size())
    throw ApiError(404, "the job has no such picture yet", "picture_not_found");
  if (http.method == "GET") job->mark_fetched(number);
  return {.now = {.content_type = content_type_of(job->order().form),
                  .headers = {{"cache-control", "private, max-age=600, immutable"}},
                  .file = pictures[number].file}};
}

}  // namespace

std::vector<Route> jobs_routes() {
  return {{"POST", "/v1/jobs", post_job, Asks::kPictures},
          {"GET", "/v1/jobs", list_jobs},
          {"GET", "/v1/jobs/{}", get_job},
          {"DELETE", "/v1/jobs/{}", cancel_job},
          {"GET", "/v1/jobs/{}/events", job_events},
          {"GET", "/v1/jobs/{}/pictures/{}", job_picture, Asks::kOther, is_made_picture}};
}

}  // namespace braid::serve
