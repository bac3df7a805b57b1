// Reads a request's head from a connection, which may begin with empty lines.
#pragma once

#include <functional>

#include "serve/http/boost_messages.h"
#include "serve/http/read_limit.h"

namespace braid::serve {

inline constexpr std::size_t kMostBytesOfHead = 16 << 10;

// Drops empty lines, which some clients send behind a body (RFC 9112, section 2.2), and says
// whether a head has begun behind them.
bool begins_head(boost::beast::flat_buffer& buffer);

// What a reader fills, and within which limit.
struct Reading {
  Stream& stream;
  boost::beast::flat_buffer& buffer;
  http::request_parser<http::string_body>& parser;
  ReadLimit& limit;  // started
};

// Reads a head, then calls `then` in the stream's executor: with beast::error::timeout if the limit
// is over. `then` keeps alive what `reading` names.
void async_read_head(Reading reading, std::function<void(error_code)> then);
ApiError head_too_long();
ApiError head_too_slow(std::chrono::milliseconds time);

}  // namespace braid::serve
