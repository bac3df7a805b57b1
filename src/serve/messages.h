// Requests and answers as handlers see them, independent of sockets and libraries.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "serve/jobs/job.h"

namespace braid::serve {

struct HttpRequest {
  std::string id;  // for the log, and sent to the client as x-request-id
  std::string method, path;
  std::map<std::string, std::string> query;    // decoded
  std::map<std::string, std::string> headers;  // names in lower case
  std::string body;
  int version = 11;                            // 10: HTTP/1.0
  std::string client_address, server_address;  // without ports
  // How the client knows the server: "https://example.org" (empty if it does not say), and the path
  // below which it stands, "/pictures" or empty.
  std::string site, prefix;

  std::string header(const std::string& name) const {
    const auto it = headers.find(name);
    return it == headers.end() ? "" : it->second;
  }
  std::string parameter(const std::string& name) const {
    const auto it = query.find(name);
    return it == query.end() ? "" : it->second;
  }
};

using Headers = std::vector<std::pair<std::string, std::string>>;

struct HttpResponse {
  int status = 200;
  std::string content_type = "application/json";
  std::string body = {};
  Headers headers = {};
  FileBytes file = {};  // sent in place of `body`, without a copy for each client
};

// A handler's result: an immediate answer, or a job and how to answer its end or its events.
struct Answer {
  // Set for what takes a while, such as decoding pictures: returns the answer, on any thread. That
  // answer may have a `rest` of its own: other clients have their turn before it, and it is not
  // called if the client leaves meanwhile or the server stops. `when_gone` is called then.
  std::function<Answer()> rest = {};
  // Set for what another machine does first: returns the answer, on a thread that may wait. If the
  // client leaves meanwhile, or the server stops, `when_gone` is called.
  std::function<Answer()> elsewhere = {};
  std::shared_ptr<Job> job = nullptr;  // null: only `now` is sent
  // With a job, one of the two is set. It is called where requests are handled, while the client is
  // connected.
  std::function<HttpResponse(const Job& ended)> when_ended = {};
  std::function<std::string(const Event& event)> on_event = {};  // text for an event stream
  std::uint64_t after_event = 0;                                 // events up to this one are known
  std::function<void()> when_gone = {};                          // the client left before the end
  // Last: GCC 12 destroys a member twice if the initialiser of a later one throws.
  HttpResponse now = {};
};

// The address of OPTIONS that asks about no path (RFC 9112, 3.2.4).
constexpr std::string_view kWholeServer = "*";

// Reads the path of "/path?a=b&c=%20d", or of the same after "http://host", which then replaces the
// header `Host`; with OPTIONS also kWholeServer. Throws ApiError if it is malformed.
void read_target(std::string_view target, HttpRequest& request);
// Reads the query of the same text. Throws ApiError if it is malformed.
void read_query(std::string_view target, HttpRequest& request);

}  // namespace braid::serve
