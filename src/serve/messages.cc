#include "serve/messages.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/hexadecimal.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kMostParameters = 64;
constexpr std::string_view kScheme = "http://";  // TLS is a proxy's

enum class Plus { kIsPlus, kIsSpace };
std::string percent_decoded(std::string_view text, Plus plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' && plus == Plus::kIsSpace ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hex_value(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hex_value(text[i + 2]);
    if (low < 0)
      throw ApiError(400, "the address has a % that is not followed by two digits", "bad_request");
    out += char(high * 16 + low);
    i += 2;
  }
  return out;
}

bool is_absolute(std::string_view target) {
  return ascii_lower_case(target.substr(0, kScheme.size())) == kScheme;
}

// Returns what follows the authority of an absolute address. The authority replaces the header
// `Host`, which must be there nevertheless (RFC 9112, 3.2 and 3.2.2).
std::string_view take_authority(std::string_view target, HttpRequest& request) {
  const auto host = request.headers.find("host");
  if (host == request.headers.end()) throw ApiError(400, "there is no Host header", "bad_request");
  target.remove_prefix(kScheme.size());
  const auto authority = target.substr(0, target.find_first_of("/?"));
  // RFC 9110, 4.2.1 and 4.2.4
  if (authority.empty() || authority.find('@') != authority.npos)
    throw ApiError(400, "the address should name a host, without a user", "bad_request");
  host->second = authority;
  target.remove_prefix(authority.size());
  return target;
}

}  // namespace

void read_target(std::string_view target, HttpRequest& request) {
  if (target == kWholeServer && request.method == "OPTIONS") {
    request.path = target;
    return;
  }
  if (is_absolute(target))
    target = take_authority(target, request);
  else if (target.empty() || target.front() != '/')
    throw ApiError(400, "the address should begin with / or http://", "bad_request");
  request.path = percent_decoded(target.substr(0, target.find('?')), Plus::kIsPlus);
  if (request.path.empty()) request.path = "/";
  if (request.path.find('\0') != request.path.npos)
    throw ApiError(400, "the address has a NUL character", "bad_request");
}

void read_query(std::string_view target, HttpRequest& request) {
  const auto mark = target.find('?');
  auto rest = mark == target.npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto pair = rest.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    const auto value = pair.substr(std::min(equals + 1, pair.size()));
    if (request.query.size() >= kMostParameters)
      throw ApiError(400, "there are too many parameters", "bad_request");
    request.query[percent_decoded(pair.substr(0, equals), Plus::kIsSpace)] =
        percent_decoded(value, Plus::kIsSpace);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

}  // namespace braid::serve
