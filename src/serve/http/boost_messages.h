// Turns Boost's heads into requests that handlers see, and their answers into Boost's.
#pragma once

#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>
#include <boost/beast/core.hpp>
#include <boost/beast/http.hpp>

#include "serve/api_error.h"
#include "serve/http/answer_body.h"
#include "serve/messages.h"

namespace braid::serve {

namespace http = boost::beast::http;
using boost::beast::error_code;
using BoostResponse = http::response<AnswerBody>;

// Whether a client has sent something else than HTTP. After other errors it is gone or too slow.
bool is_malformed(error_code error);
ApiError not_http(error_code error);

// Fills in method, path and headers. Throws ApiError 400 for a head that a proxy in front may read
// otherwise.
void read_request_head(const http::request_header<>& head, HttpRequest& request);
// Fills in the query. Throws ApiError 400 if it is malformed. Call once the head is admitted: what
// strangers send is not counted.
void read_request_query(const http::request_header<>& head, HttpRequest& request);

// Whether another request may follow on the connection.
bool may_go_on(const http::request<http::string_body>& request);

// The answer to `request`, with `more` headers besides its own.
BoostResponse boost_response(HttpResponse response, const HttpRequest& request,
                             const Headers& more);

// Bytes of the body among the first `written` ones of a response.
std::size_t body_bytes_written(const BoostResponse& response, std::size_t written);

}  // namespace braid::serve
