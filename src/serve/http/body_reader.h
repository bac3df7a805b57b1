// Reads a request's body behind its head from a connection.
#pragma once

#include "serve/http/head_reader.h"

namespace braid::serve {

// Asks for a body where the client waits for that, reads it, then calls `then` in the stream's
// executor: with beast::error::timeout if the limit is over, and with http::error::header_limit if
// extensions or trailers are too long. `then` keeps alive what `reading` names.
void async_read_body(Reading reading, std::function<void(error_code)> then);
ApiError trailers_too_long();
ApiError body_too_slow(const ReadLimit& limit, std::chrono::milliseconds time);

constexpr auto kLingering = std::chrono::seconds(2);
// Reads what a client still sends behind its answer and drops it, until it is silent for
// kLingering: closing a socket with unread bytes would discard the answer. `until` bounds the
// whole.
void async_discard(std::shared_ptr<Stream> stream, Clock::time_point until);

}  // namespace braid::serve
