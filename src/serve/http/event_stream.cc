#include "serve/http/event_stream.h"

#include <algorithm>
#include <array>
#include <charconv>

#include "serve/http/usual_headers.h"

namespace braid::serve {

std::string stream_head(const std::string& request_id, const Headers& more, StreamEnd end) {
  std::string head = std::string("HTTP/1.1 200 OK\r\ncontent-type: ") + kEventStream + "\r\n";
  const auto add = [&](const auto& header) {
    head += header.first + ": " + header.second + "\r\n";
  };
  std::ranges::for_each(usual_headers(), add);
  head += "x-accel-buffering: no\r\nx-request-id: " + request_id + "\r\n";
  std::ranges::for_each(more, add);
  const bool is_chunked = end == StreamEnd::kEmptyChunk;
  return head + (is_chunked ? "transfer-encoding: chunked\r\n\r\n" : "connection: close\r\n\r\n");
}

std::string stream_piece(std::string text, StreamEnd end) {
  if (end == StreamEnd::kClosing || text.empty()) return text;
  std::array<char, 20> size{};
  const auto digits = std::to_chars(size.data(), size.data() + size.size(), text.size(), 16).ptr;
  return std::move(text.insert(0, std::string(size.data(), digits) + "\r\n").append("\r\n"));
}

std::string events_text(const std::vector<Event>& events, const WriteEvent& write) {
  std::string text;
  for (const auto& event : events) text += write(event);
  return text;
}

bool has_last_event(const std::vector<Event>& events) {
  return std::any_of(events.begin(), events.end(), [](const Event& event) {
    return event.name == "done" || event.name == "failed" || event.name == "cancelled";
  });
}

std::size_t num_picture_bytes(const std::vector<Event>& events) {
  std::size_t bytes = 0;
  for (const auto& event : events)
    if (event.file) bytes += event.file->size();
  return bytes;
}

}  // namespace braid::serve
