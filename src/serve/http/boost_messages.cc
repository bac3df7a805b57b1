#include "serve/http/boost_messages.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/text_stream.h"
#include "serve/http/event_stream.h"
#include "serve/http/usual_headers.h"

namespace braid::serve {
namespace {

// A proxy in front may read other requests from what is ambiguous (RFC 9112, section 6.3), or
// check the other one of two headers.
void require_plain(const http::fields& head) {
  for (const auto* const name : {"host", "origin", "authorization", "content-type"})
    if (head.count(name) > 1)
      throw ApiError(400, std::string("there are several ") + name + " headers", "bad_request");
  const auto codings = head.count(http::field::transfer_encoding);
  const auto coding = head[http::field::transfer_encoding];
  if (codings > 1 || (codings == 1 && !boost::beast::iequals(coding, "chunked")))
    throw ApiError(400, "the transfer encoding should be chunked alone", "bad_request");
}

// Boost's keep_alive() reads only the first of several such fields.
bool says_close(const http::request_header<>& head) {
  const auto [begin, end] = head.equal_range(http::field::connection);
  return std::any_of(begin, end, [](const auto& field) {
    return http::token_list(field.value()).exists("close");
  });
}

// Answers without a body have no length either.
bool is_bodiless(int status) { return status == 204 || status == 304; }

}  // namespace

bool is_malformed(error_code error) {
  return error.category() == http::make_error_code(http::error::bad_method).category() &&
         error != http::error::end_of_stream && error != http::error::partial_message;
}

ApiError not_http(error_code error) {
  return {400, "this is not an HTTP request: " + error.message(), "bad_request"};
}

void read_request_head(const http::request_header<>& head, HttpRequest& request) {
  request.version = int(head.version());
  request.method = std::string(head.method_string());
  for (const auto& field : head) {
    const auto name = field.name_string(), value = field.value();
    request.headers[ascii_lower_case({name.data(), name.size()})].assign(value.data(),
                                                                         value.size());
  }
  require_plain(head);
  const auto target = head.target();
  read_target({target.data(), target.size()}, request);
}

void read_request_query(const http::request_header<>& head, HttpRequest& request) {
  const auto target = head.target();
  read_query({target.data(), target.size()}, request);
}

// HTTP/1.0 knows no chunks: a proxy in front may have found another end (RFC 9112, section 6.1).
bool may_go_on(const http::request<http::string_body>& request) {
  const bool has_coding = request.count(http::field::transfer_encoding) > 0;
  return request.keep_alive() && !says_close(request) && !(request.version() < 11 && has_coding);
}

BoostResponse boost_response(HttpResponse response, const HttpRequest& request,
                             const Headers& more) {
  BoostResponse out(http::status(response.status), unsigned(request.version));
  for (const auto& [name, value] : usual_headers()) out.set(name, value);
  if (!is_bodiless(response.status)) out.set(http::field::content_type, response.content_type);
  if (!request.id.empty()) out.set("x-request-id", request.id);
  for (const auto& [name, value] : response.headers) out.set(name, value);
  for (const auto& [name, value] : more) out.set(name, value);
  out.body() = {.text = std::move(response.body), .file = std::move(response.file)};
  // how long a stream gets is not known
  if (response.content_type == kEventStream)
    out.set("x-accel-buffering", "no");
  else if (!is_bodiless(response.status))
    out.prepare_payload();
  return out;
}

std::size_t body_bytes_written(const BoostResponse& response, std::size_t written) {
  TextWriter head;
  head << response.base();
  return written - std::min(written, head.str().size());
}

}  // namespace braid::serve
