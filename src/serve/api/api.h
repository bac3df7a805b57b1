// The server's API: a table of routes, by kind of client.
#pragma once

#include <atomic>

#include "net/enhancer/enhancer.h"
#include "serve/api/access.h"
#include "serve/api_error.h"
#include "serve/body/picture_request.h"
#include "serve/messages.h"
#include "serve/service.h"

namespace braid::serve {

// Does what Enhancer::enhance does, for the prompts of a model. Any thread may call it.
using Enhance = std::function<braid::net::EnhancedPrompt(
    const Backend&, const braid::net::PlainPrompt&, const std::stop_token&)>;

// The context of all handlers.
struct ApiContext {
  Service& service;
  RequestBounds bounds = {};
  UnknownFields unknown_fields = UnknownFields::kRefused;
  std::string frame_ancestors = "'none'";  // which pages may show ours in a frame, as CSP says it
  std::function<int()> num_connections = [] { return 0; };
  Enhance enhance = {};  // null if the operator gave no enhancer
  // The model chosen by clients of the web UI: one choice for all, as they expect.
  std::shared_ptr<std::atomic<std::size_t>> web_ui_model =
      std::make_shared<std::atomic<std::size_t>>(0);
};

// `parts` are the path segments that matched {} in the pattern.
using Handler = std::function<Answer(const ApiContext& context, const HttpRequest& request,
                                     const std::vector<std::string>& parts)>;
enum class Asks { kOther, kPictures };
struct Route {
  std::string method, pattern;  // "/v1/jobs/{}/events"
  Handler handle;
  Asks asks = Asks::kOther;
  // Whether the key is not asked for: the path itself is a secret. Null: it always is.
  std::function<bool(const ApiContext& context, const std::vector<std::string>& parts)> is_open =
      nullptr;
};

std::vector<Route> openai_routes();
std::vector<Route> jobs_routes();
std::vector<Route> status_routes();
std::vector<Route> sdapi_routes();
std::vector<Route> sdapi_list_routes();
std::vector<Route> sdapi_extras_routes();
std::vector<Route> tokens_routes();
std::vector<Route> page_routes();

class Api {
 public:
  Api(ApiContext context, Access access);

  // Call before the body is read: the request as handlers see it. Throws ApiError.
  void admit(HttpRequest& head) const;
  ApiError body_too_large(std::uint64_t most_bytes) const;
  // Failures become answers, too. Takes as long as reading the body; pictures are decoded by the
  // answer's `rest`, which finish() calls.
  Answer handle(const HttpRequest& request) const;
  Answer finish(const HttpRequest& request, const std::function<Answer()>& rest) const;
  // Counts what ends without a job, and its answer's status, among the requests for pictures if it
  // is one.
  void count(const HttpRequest& request, int status) const;
  const Access& access() const { return access_; }

 private:
  // A route is found with the parts of the path that it asks for. Throws ApiError 404 or 405.
  struct Found {
    const Route* route = nullptr;
    std::vector<std::string> parts = {};
  };
  Found find_route(const HttpRequest& request) const;
  bool asks_for_pictures(const HttpRequest& request) const;
  bool is_open(const HttpRequest& head) const;
  Answer dispatch(const HttpRequest& request) const;

  ApiContext context_;
  Access access_;
  std::vector<Route> routes_;
};

// What `write` makes of a job's end. A failure becomes an answer, too, and is not counted: the
// service has counted the job.
Answer answer_of_end(const Job& ended, const std::function<HttpResponse(const Job&)>& write);

// The fields of a JSON body or form, according to its head. Throws ApiError.
Fields fields_of(const HttpRequest& request, const ApiContext& context);

HttpResponse error_response(const ApiError& error);
// What a client is told that waited for a job which was cancelled or failed.
ApiError error_of(const Job::Status& status);
Answer json_answer(const Json& json, int status = 200);
// The text of `object` with one more member in front, whose value is JSON text. For megabytes of
// base64: Json would check each character.
std::string with_member(const std::string& name, std::string_view value, const Json& object);
// One event of an event stream.
std::string event_text(const std::string& name, const std::string& data, std::uint64_t id = 0);

}  // namespace braid::serve
