// Reads a request's body behind its head from a connection.
#pragma once

#include "serve/http/head_reader.h"

namespace braid::serve {

// Reads a body within the stream's time limit, then calls `then` in its executor: with
// http::error::header_limit if extensions or trailers are too long. `then` keeps the stream, the
// buffer and the parser alive.
void async_read_body(Stream& stream, boost::beast::flat_buffer& buffer,
                     http::request_parser<http::string_body>& parser,
                     std::function<void(error_code)> then);
ApiError trailers_too_long();

}  // namespace braid::serve
