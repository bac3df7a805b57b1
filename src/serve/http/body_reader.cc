#include "serve/http/body_reader.h"

#include "base/error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostBodyBytesAtOnce = 64 << 10;
// The extensions of a chunk have less, and the trailers.
constexpr std::size_t kMostTrailerBytes = 16 << 10;
constexpr std::string_view kContinue = "HTTP/1.1 100 Continue\r\n\r\n";
constexpr std::uint64_t kMostDiscarded = std::uint64_t(64) << 20;

// Parses what the buffer holds. need_more: the rest is the beginning of something, which comes
// whole.
error_code parsed(boost::beast::flat_buffer& buffer,
                  http::request_parser<http::string_body>& parser) {
  error_code error;
  while (buffer.size() > 0 && !parser.is_done() && !error) {
    const auto seen = boost::asio::buffer(buffer.cdata(), kMostTrailerBytes);
    const auto bytes = parser.put(seen, error);
    buffer.consume(bytes);
    if (error == http::error::need_more && bytes > 0) error = {};
  }
  const bool is_short = error == http::error::need_more;
  return is_short && buffer.size() >= kMostTrailerBytes ? http::error::header_limit : error;
}

bool is_asked_for(const http::request<http::string_body>& head) {
  return head.version() >= 11 && boost::beast::iequals(head[http::field::expect], "100-continue");
}

// Boost's own reading bounds neither extensions nor trailers, and throws for those of 64 KiB.
void read_on(Reading reading, std::function<void(error_code)> then) {
  auto& [stream, buffer, parser, limit] = reading;
  parser.eager(true);
  const auto error = parsed(buffer, parser);
  if (parser.is_done() || (error && error != http::error::need_more)) return then(error);
  limit.begin_read();
  stream.async_read_some(
      buffer.prepare(kMostBodyBytesAtOnce),
      [reading, then = std::move(then)](error_code outcome, std::size_t bytes) mutable {
        reading.buffer.commit(bytes);
        if (const auto failure = reading.limit.end_read(outcome, bytes)) return then(failure);
        read_on(reading, std::move(then));
      });
}

struct Discarded {
  std::shared_ptr<Stream> stream;
  Clock::time_point until;
  std::string buffer = std::string(kMostBodyBytesAtOnce, '\0');
  std::uint64_t bytes = 0;
};

void discard(Discarded discarded) {
  const auto what = std::make_shared<Discarded>(std::move(discarded));
  what->stream->expires_at(std::min(Clock::now() + kLingering, what->until));
  what->stream->async_read_some(boost::asio::buffer(what->buffer),
                                [what](error_code error, std::size_t bytes) {
                                  what->bytes += bytes;
                                  if (!error && what->bytes < kMostDiscarded)
                                    discard(std::move(*what));
                                });
}

}  // namespace

ApiError trailers_too_long() {
  return {431,
          text_of("the extensions of a chunk, and the trailers, should have less than ",
                  kMostTrailerBytes, " bytes"),
          "trailers_too_large"};
}

ApiError body_too_slow(const ReadLimit& limit, std::chrono::milliseconds time) {
  const auto seconds = text_of(std::chrono::duration<double>(time).count(), " s");
  return {408,
          text_of("the body came too slowly: within ", seconds,
                  " each, further bytes should come, ", "and after the first ", seconds, " ",
                  kSlowestClient >> 10, " KiB per second, there were ", limit.received(), " bytes"),
          "request_timeout"};
}

void async_read_body(Reading reading, std::function<void(error_code)> then) {
  if (!is_asked_for(reading.parser.get())) return read_on(reading, std::move(then));
  reading.limit.begin_read();
  boost::asio::async_write(reading.stream, boost::asio::buffer(kContinue),
                           [reading, then = std::move(then)](error_code error, std::size_t) {
                             if (const auto failure = reading.limit.end_read(error, 0))
                               return then(failure);
                             read_on(reading, then);
                           });
}

void async_discard(std::shared_ptr<Stream> stream, Clock::time_point until) {
  discard({.stream = std::move(stream), .until = until});
}

}  // namespace braid::serve
