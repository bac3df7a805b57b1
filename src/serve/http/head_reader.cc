#include "serve/http/head_reader.h"

#include <string_view>

#include "base/error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kFirstBytes = 4096;  // room for most heads
constexpr std::string_view kLineEnd = "\r\n";

std::string_view bytes_in(const boost::beast::flat_buffer& buffer) {
  return {static_cast<const char*>(buffer.cdata().data()), buffer.size()};
}

}  // namespace

bool begins_head(boost::beast::flat_buffer& buffer) {
  while (bytes_in(buffer).starts_with(kLineEnd)) buffer.consume(kLineEnd.size());
  return !kLineEnd.starts_with(bytes_in(buffer));
}

void async_read_head(Reading reading, std::function<void(error_code)> then) {
  auto& [stream, buffer, parser, limit] = reading;
  limit.begin_read();
  if (begins_head(buffer)) {
    http::async_read_header(
        stream, buffer, parser,
        [&limit = limit, then = std::move(then)](error_code error, std::size_t bytes) {
          then(limit.end_read(error, bytes));
        });
    return;
  }
  stream.async_read_some(
      buffer.prepare(kFirstBytes),
      [reading, then = std::move(then)](error_code error, std::size_t bytes) mutable {
        reading.buffer.commit(bytes);
        if (const auto failure = reading.limit.end_read(error, bytes)) return then(failure);
        async_read_head(reading, std::move(then));
      });
}

ApiError head_too_long() {
  return {431, text_of("the head should have at most ", kMostBytesOfHead, " bytes, it has more"),
          "head_too_large"};
}

ApiError head_too_slow(std::chrono::milliseconds time) {
  const std::chrono::duration<double> seconds = time;
  return {408, text_of("the head should be complete within ", seconds.count(), " s, it is not"),
          "request_timeout"};
}

}  // namespace braid::serve
