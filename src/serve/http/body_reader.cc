#include "serve/http/body_reader.h"

#include "base/error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostBodyBytesAtOnce = 64 << 10;
// The extensions of a chunk have less, and the trailers.
constexpr std::size_t kMostTrailerBytes = 16 << 10;

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

}  // namespace

ApiError trailers_too_long() {
  return {431,
          text_of("the extensions of a chunk, and the trailers, should have less than ",
                  kMostTrailerBytes, " bytes"),
          "trailers_too_large"};
}

// Boost's own reading bounds neither extensions nor trailers, and throws for those of 64 KiB.
void async_read_body(Stream& stream, boost::beast::flat_buffer& buffer,
                     http::request_parser<http::string_body>& parser,
                     std::function<void(error_code)> then) {
  parser.eager(true);
  const auto error = parsed(buffer, parser);
  if (parser.is_done() || (error && error != http::error::need_more)) return then(error);
  stream.async_read_some(
      buffer.prepare(kMostBodyBytesAtOnce),
      [&, then = std::move(then)](error_code failure, std::size_t bytes) mutable {
        buffer.commit(bytes);
        if (failure) return then(failure);
        async_read_body(stream, buffer, parser, std::move(then));
      });
}

}  // namespace braid::serve
