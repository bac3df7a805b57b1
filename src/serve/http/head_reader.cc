#include "serve/http/head_reader.h"

#include <string_view>

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

void async_read_head(Stream& stream, boost::beast::flat_buffer& buffer,
                     http::request_parser<http::string_body>& parser,
                     std::function<void(error_code)> then) {
  if (begins_head(buffer)) {
    http::async_read_header(
        stream, buffer, parser,
        [then = std::move(then)](error_code error, std::size_t) { then(error); });
    return;
  }
  stream.async_read_some(buffer.prepare(kFirstBytes),
                         [&, then = std::move(then)](error_code error, std::size_t bytes) mutable {
                           buffer.commit(bytes);
                           if (error) return then(error);
                           async_read_head(stream, buffer, parser, std::move(then));
                         });
}

}  // namespace braid::serve
