// OpenAI's images API, as its clients use it.
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>

#include "base/base64.h"
#include "base/error.h"
#include "base/json.h"
#include "serve/api/take_order.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

// The form of the answer.
struct AnswerForm {
  bool is_stream = false;
  bool is_url = false;
  int num_partial = 0;
  std::string base = {};     // of URLs: "http://localhost:8188"
  std::string quality = {};  // as it was asked for
};

// Clients that name DALL-E await its default. A stream has its pictures in it.
bool read_is_url(Fields& fields, const Backend& backend, bool is_stream) {
  const auto* const otherwise = asks_for_dall_e(fields, backend) ? "url" : "b64_json";
  const bool is_url = fields.word("response_format", {"b64_json", "url"}, otherwise) == "url";
  if (is_url && is_stream && fields.has("response_format"))
    fields.warn("'response_format' is not used: a 'stream' has its pictures in it, as base64");
  return is_url && !is_stream;
}

AnswerForm read_answer_form(Fields& fields, const HttpRequest& request, const Backend& backend) {
  AnswerForm form{.base = request.site + request.prefix};
  form.is_stream = fields.flag("stream").value_or(false);
  form.num_partial = int(fields.integer({"partial_images"}, 0, 3).value_or(0));
  if (form.num_partial > 0 && !form.is_stream)
    fields.warn("'partial_images' is not used: only a 'stream' has them");
  form.is_url = read_is_url(fields, backend, form.is_stream);
  if (!fields.files("markup").empty())
    refuse("markup", "'markup' is not followed here: paint a 'mask', or draw into the picture");
  // Published by OpenAI: of the formats GIF and SVG, of moderation, and of how its models work.
  fields.accept_unused({"moderation", "style", "input_fidelity", "complexity", "frame_count",
                        "frame_duration_ms", "svg", "svg[model]", "svg[reasoning][effort]",
                        "prompt_rewriter"});
  return form;
}

// The field `quality`: "low" takes half of the steps; an explicit number of steps wins.
std::string read_quality(Fields& fields, const ModelInfo& info, const RequestBounds& bounds,
                         Request& request) {
  auto quality = fields.word(
      "quality", {"auto", "low", "medium", "high", "xhigh", "max", "standard", "hd"}, "auto");
  if (quality == "low" && !request.steps)
    request.steps = std::min((info.steps + 1) / 2, bounds.max_steps);
  return quality;
}

std::string size_text(int width, int height) {
  return std::to_string(width) + "x" + std::to_string(height);
}

std::int64_t unix_time() {
  return std::chrono::duration_cast<std::chrono::seconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

double seconds_of(const Job::Status& status) {
  if (!status.started || !status.finished) return 0;
  return std::chrono::duration<double>(*status.finished - *status.started).count();
}

std::string quoted_base64(std::string_view bytes) {
  std::string text = "\"";
  append_base64(text, bytes);
  return text += '"';
}

const char* background_of(const Order& order) {
  return order.backend->info.draws_alpha && keeps_alpha(order.form) ? "transparent" : "opaque";
}

// The size stands in the answer, once for all.
Json without_size(Json made) {
  made.erase("width");
  made.erase("height");
  return made;
}

// OpenAI's field for a prompt that was rewritten.
void add_revised_prompt(Json& json, const Order& order) {
  if (!order.original_prompt.empty()) json["revised_prompt"] = order.request.prompts.front();
}

// An element of the answer's list.
std::string picture_text(const Job& job, std::size_t number, const MadePicture& picture,
                         const AnswerForm& form) {
  auto rest = without_size(made_json(picture));
  add_revised_prompt(rest, job.order());
  if (!form.is_url) return with_member("b64_json", quoted_base64(*picture.file), rest);
  const Json url = text_of(form.base, "/v1/jobs/", job.id(), "/pictures/", number);
  return with_member("url", json_line(url), rest);
}

HttpResponse whole_answer(const Job& job, const AnswerForm& form) {
  const auto status = job.status();
  if (status.state != JobState::kDone) return error_response(error_of(status));
  std::string data;
  for (std::size_t i = 0; i < status.pictures.size(); ++i)
    data += (i > 0 ? "," : "") + picture_text(job, i, status.pictures[i], form);
  const auto& request = job.order().request;
  Json json = {{"created", unix_time()},
               {"size", size_text(*request.width, *request.height)},
               {"output_format", format_name(job.order().form.format)},
               {"background", background_of(job.order())},
               {"seconds", seconds_of(status)}};
  if (!status.warnings.empty()) json["warnings"] = status.warnings;
  return {.body = with_member("data", "[" + data + "]", json)};
}

// The picture and the other fields.
std::string picture_event(const std::string& name, const Event& event, const Json& fields) {
  return event_text(name, with_member("b64_json", quoted_base64(*event.file), fields));
}

// Fields common to both kinds of events, besides the picture: of the picture that was asked for,
// also with a partial one (openai 3.57, image_gen_partial_image_event.py).
Json stream_event(const std::string& type, const Order& order, const std::string& quality) {
  const auto& request = order.request;
  return {{"type", type},
          {"created_at", unix_time()},
          {"size", size_text(*request.width, *request.height)},
          {"quality", quality},
          {"background", background_of(order)},
          {"output_format", format_name(order.form.format)}};
}

std::string stream_error(const Job& job) {
  return event_text("error", error_json(error_of(job.status())));
}

// Clients take any unknown event for a picture, so progress is sent as comments.
class OpenAiStream {
 public:
  // Event names start with `kind`.
  OpenAiStream(std::shared_ptr<Job> job, std::string kind, AnswerForm form)
      : job_(std::move(job)), kind_(std::move(kind)), form_(std::move(form)) {}

  std::string operator()(const Event& event) {
    if (event.name == "preview") return preview(event);
    if (event.name == "progress") return ": " + event.data + "\n\n";
    if (event.name == "failed" || event.name == "cancelled") return stream_error(*job_);
    if (event.name != "picture") return "";
    auto data = stream_event(kind_ + ".completed", job_->order(), form_.quality);
    data["usage"] = {{"input_tokens", 0},
                     {"output_tokens", 0},
                     {"total_tokens", 0},
                     {"input_tokens_details", {{"image_tokens", 0}, {"text_tokens", 0}}}};
    auto made = without_size(Json::parse(event.data));
    made.erase("picture");
    data.update(made);
    add_revised_prompt(data, job_->order());
    if (const auto warnings = job_->status().warnings; !warnings.empty())
      data["warnings"] = warnings;
    return picture_event(kind_ + ".completed", event, data);
  }

 private:
  // Spreads the previews evenly over a picture's steps. Those of pictures that are drawn together
  // alternate.
  std::string preview(const Event& event) {
    const auto shown = Json::parse(event.data);
    const int step = shown["step"], steps = shown["steps"];
    int& num_shown = num_shown_[shown["picture"]];
    const int next = steps * (num_shown + 1) / (form_.num_partial + 1);
    if (num_shown >= form_.num_partial || step < next) return "";
    auto data = stream_event(kind_ + ".partial_image", job_->order(), form_.quality);
    data["partial_image_index"] = num_shown++;
    return picture_event(kind_ + ".partial_image", event, data);
  }

  std::shared_ptr<Job> job_;
  std::string kind_;
  AnswerForm form_;
  std::map<int, int> num_shown_;  // of each picture of the job
};

// A request for new pictures or, with `read_pictures`, for edits of given ones.
using ReadPictures =
    std::function<UndecodedPictures(Fields&, const ModelInfo&, const RequestBounds&)>;
Answer make_pictures(const ApiContext& context, const HttpRequest& http, const std::string& kind,
                     const ReadPictures& read_pictures) {
  context.service.require_room();
  auto fields = fields_of(http, context);
  const auto& backend = read_model(fields, context.service.backends());
  auto request = read_picture_fields(fields, backend, context.bounds);
  auto quality = read_quality(fields, backend.info, context.bounds, request);
  auto form = read_answer_form(fields, http, backend);
  form.quality = std::move(quality);
  const auto file_form = read_file_form(fields, backend.info);
  const auto user = read_user(fields);
  const bool is_enhanced = reads_enhance(fields, context);
  auto brought = read_pictures(fields, backend.info, context.bounds);
  fields.finish();
  Order order{.backend = &backend,
              .request = std::move(request),
              .client = client_of(http, user),
              .warnings = fields.warnings(),
              .sent = fields.names(),
              .form = file_form,
              .is_kept = form.is_url,
              .has_previews = form.is_stream && form.num_partial > 0,
              .preview_interval = 0};
  return take_order(
      context,
      {.order = std::move(order), .brought = std::move(brought), .is_enhanced = is_enhanced},
      [&context, form, kind](const std::shared_ptr<Job>& job) {
        Answer answer{.job = job, .when_gone = [&context, job] { context.service.cancel(job); }};
        if (form.is_stream)
          answer.on_event = OpenAiStream(job, kind, form);
        else
          answer.when_ended = [form](const Job& ended) { return whole_answer(ended, form); };
        return answer;
      });
}

Answer generations(const ApiContext& context, const HttpRequest& http,
                   const std::vector<std::string>&) {
  const auto none = [](Fields&, const ModelInfo&, const RequestBounds& bounds) {
    return UndecodedPictures(bounds);
  };
  return make_pictures(context, http, "image_generation", none);
}

Answer edits(const ApiContext& context, const HttpRequest& http, const std::vector<std::string>&) {
  return make_pictures(context, http, "image_edit", read_edited_pictures);
}

Json model_json(const std::string& name) {
  return {{"id", name}, {"object", "model"}, {"created", 0}, {"owned_by", "braid"}};
}

Answer models(const ApiContext& context, const HttpRequest&, const std::vector<std::string>&) {
  auto data = Json::array();
  for (const auto& backend : context.service.backends()) {
    data.push_back(model_json(backend.model));
    for (const auto& name : backend.names) data.push_back(model_json(name));
  }
  return json_answer({{"object", "list"}, {"data", std::move(data)}});
}

Answer model(const ApiContext& context, const HttpRequest&, const std::vector<std::string>& parts) {
  auto name = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) name += "/" + parts[i];
  const auto& backend = backend_named(name, context.service.backends());
  return json_answer(model_json(std::ranges::count(backend.names, name) ? name : backend.model));
}

}  // namespace

std::vector<Route> openai_routes() {
  return {{"POST", "/v1/images/generations", generations, Asks::kPictures},
          {"POST", "/v1/images/edits", edits, Asks::kPictures},
          {"GET", "/v1/models", models},
          {"GET", "/v1/models/{}", model},
          {"GET", "/v1/models/{}/{}", model}};  // "org/name"
}

}  // namespace braid::serve
