#include "serve/api/api.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "base/ascii.h"
#include "base/error.h"
#include "base/json.h"
#include "base/readable_bytes.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

// Whether the path matches the pattern; if so, `parts` receives what {} matched: no empty name.
bool fits(const std::string& pattern, const std::string& path, std::vector<std::string>& parts) {
  const auto wanted = segments_of(pattern, '/'), given = segments_of(path, '/');
  if (wanted.size() != given.size()) return false;
  parts.clear();
  for (std::size_t i = 0; i < wanted.size(); ++i) {
    const bool is_name = wanted[i] == "{}";
    if (is_name ? given[i].empty() : wanted[i] != given[i]) return false;
    if (is_name) parts.emplace_back(given[i]);
  }
  return true;
}

// Failures become answers, once `failed` has heard of them.
Answer answer_to(const std::function<Answer()>& work,
                 const std::function<void(const ApiError&)>& failed) {
  const auto told = [&](const ApiError& error) {
    failed(error);
    return Answer{.now = error_response(error)};
  };
  try {
    return work();
  } catch (const ApiError& error) {
    return told(error);
  } catch (const std::exception& error) {
    return told({500, error.what(), "internal_error"});
  }
}

}  // namespace

Api::Api(ApiContext context, Access access)
    : context_(std::move(context)), access_(std::move(access)) {
  auto& most = context_.bounds.max_pictures;
  most = std::min(most, context_.service.max_waiting_pictures());  // others would never fit
  for (const auto& routes :
       {status_routes(), openai_routes(), jobs_routes(), sdapi_routes(), sdapi_list_routes(),
        sdapi_extras_routes(), tokens_routes(), page_routes()})
    routes_.insert(routes_.end(), routes.begin(), routes.end());
}

Answer Api::handle(const HttpRequest& request) const {
  return finish(request, [&] { return dispatch(request); });
}

// The folder may be there again soon: its disk was unreachable, or too many files were open.
Answer Api::finish(const HttpRequest& request, const std::function<Answer()>& rest) const {
  const auto work = [&]() -> Answer {
    try {
      return rest();
    } catch (const LorasUnreadable& failure) {
      context_.service.warn(failure.what());
      throw busy_for(5, "the server cannot read its folder of LoRAs: its log says why",
                     "loras_unreadable");
    }
  };
  return answer_to(work, [&](const ApiError& error) { count(request, error.status); });
}

Answer answer_of_end(const Job& ended, const std::function<HttpResponse(const Job&)>& write) {
  return answer_to([&] { return Answer{.now = write(ended)}; }, [](const ApiError&) {});
}

bool Api::asks_for_pictures(const HttpRequest& request) const {
  return std::ranges::any_of(routes_, [&](const Route& route) {
    return route.asks == Asks::kPictures && route.method == request.method &&
           route.pattern == request.path;
  });
}

void Api::count(const HttpRequest& request, int status) const {
  const auto outcome = outcome_of(status);
  if (outcome && asks_for_pictures(request)) context_.service.metrics().request_ended(*outcome);
}

// Who has no key learns nothing of what is not there.
bool Api::is_open(const HttpRequest& head) const {
  try {
    const auto [route, parts] = find_route(head);
    return route->is_open && route->is_open(context_, parts);
  } catch (const ApiError&) {
    return false;
  }
}

// What is not there has no content type to judge.
void Api::admit(HttpRequest& head) const {
  access_.admit(head, [this](const HttpRequest& request) { return is_open(request); });
  if (head.method == "OPTIONS") return;
  (void)find_route(head);
  check_content_type(head);
}

ApiError Api::body_too_large(std::uint64_t most_bytes) const {
  return {413,
          text_of("the body is too long: it may have ", most_bytes, " bytes (",
                  readable_bytes(double(most_bytes)), ", --max-body), and its pictures ",
                  context_.bounds.max_input_pixels, " pixels (--max-input-pixels)"),
          "body_too_large"};
}

Api::Found Api::find_route(const HttpRequest& request) const {
  std::string methods;
  Found found;
  for (const auto& route : routes_) {
    if (!fits(route.pattern, request.path, found.parts)) continue;
    const bool is_head = request.method == "HEAD" && route.method == "GET";
    found.route = &route;
    if (route.method == request.method || is_head) return found;
    methods += (methods.empty() ? "" : ", ") + route.method;
    if (route.method == "GET") methods += ", HEAD";
  }
  const auto shown = request.path.substr(0, 200);
  if (methods.empty()) throw ApiError(404, "there is nothing at " + shown, "not_found");
  ApiError error(405, shown + " takes " + methods + ", not " + request.method.substr(0, 20),
                 "method_not_allowed");
  error.allow = methods;
  throw error;
}

Answer Api::dispatch(const HttpRequest& request) const {
  if (request.path == kWholeServer)
    return {.now = {.status = 204, .headers = {{"allow", "GET, HEAD, POST, DELETE, OPTIONS"}}}};
  try {
    const auto [route, parts] = find_route(request);
    return route->handle(context_, request, parts);
  } catch (const ApiError& error) {
    if (request.method != "OPTIONS" || error.status != 405) throw;
    return {.now = {.status = 204, .headers = {{"allow", error.allow}}}};
  }
}

Fields fields_of(const HttpRequest& request, const ApiContext& context) {
  const auto type = request.header("content-type");
  const auto lower = ascii_lower_case(type);
  if (!lower.starts_with("multipart/form-data"))
    return Fields(request.body, context.unknown_fields);
  return Fields(read_multipart(request.body, type), context.unknown_fields);
}

HttpResponse error_response(const ApiError& error) {
  HttpResponse response{.status = error.status, .body = error_json(error)};
  if (error.retry_after > 0)
    response.headers.emplace_back("retry-after", std::to_string(error.retry_after));
  if (!error.allow.empty()) response.headers.emplace_back("allow", error.allow);
  if (error.is_last_word) response.headers.emplace_back("x-should-retry", "false");
  if (!error.challenge.empty()) response.headers.emplace_back("www-authenticate", error.challenge);
  return response;
}

ApiError error_of(const Job::Status& status) {
  const bool was_cancelled = status.state == JobState::kCancelled;
  const int answer = status_of_end(status.state, status.cause);
  if (status.cause == Cause::kRequest) return {answer, status.error, "invalid_value", status.param};
  if (status.cause == Cause::kStop)
    return busy_for(5, was_cancelled ? "the server stops before the end" : status.error,
                    "draining");
  const auto code = was_cancelled                  ? "cancelled"
                    : status.cause == Cause::kLoad ? "model_not_loaded"
                                                   : "generation_failed";
  ApiError error(answer, was_cancelled ? "the request was cancelled" : status.error, code);
  error.is_last_word = true;
  return error;
}

Answer json_answer(const Json& json, int status) {
  return {.now = {.status = status, .body = json_line(json)}};
}

std::string with_member(const std::string& name, std::string_view value, const Json& object) {
  const auto rest = json_line(object);
  std::string text = "{\"" + name + "\":";
  text.reserve(text.size() + value.size() + rest.size());
  text += value;
  if (!object.empty()) text += ',';
  return text.append(rest, 1);
}

std::string event_text(const std::string& name, const std::string& data, std::uint64_t id) {
  const auto numbered = id > 0 ? text_of("id: ", id, "\n") : std::string();
  return text_of(numbered, "event: ", name, "\ndata: ", data, "\n\n");
}

}  // namespace braid::serve
