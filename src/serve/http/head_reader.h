// Reads a request's head from a connection, which may begin with empty lines.
#pragma once

#include <functional>

#include "serve/http/boost_messages.h"

namespace braid::serve {

using Stream = boost::beast::basic_stream<boost::asio::generic::stream_protocol>;

// Drops empty lines, which some clients send behind a body (RFC 9112, section 2.2), and says
// whether a head has begun behind them.
bool begins_head(boost::beast::flat_buffer& buffer);

// Reads a head within the stream's time limit, then calls `then` in its executor. `then` keeps the
// stream, the buffer and the parser alive.
void async_read_head(Stream& stream, boost::beast::flat_buffer& buffer,
                     http::request_parser<http::string_body>& parser,
                     std::function<void(error_code)> then);

}  // namespace braid::serve
