// A job's events as a client reads them: text that grows until the job ends (server-sent events).
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "serve/messages.h"

namespace braid::serve {

constexpr const char* kEventStream = "text/event-stream; charset=utf-8";

// How a client learns where the stream ends: each piece is a chunk and the last one is empty, or
// the connection is closed.
enum class StreamEnd { kEmptyChunk, kClosing };

std::string stream_head(const std::string& request_id, const Headers& more, StreamEnd end);
// The bytes of a piece of the stream; none for an empty text, which would end it.
std::string stream_piece(std::string text, StreamEnd end);

using WriteEvent = std::function<std::string(const Event&)>;
std::string events_text(const std::vector<Event>& events, const WriteEvent& write);

// The one who writes events remembers earlier ones, so it comes along.
struct WrittenEvents {
  std::string piece;
  WriteEvent write;
  bool is_over = false;
};
bool has_last_event(const std::vector<Event>& events);
std::size_t num_picture_bytes(const std::vector<Event>& events);

}  // namespace braid::serve
