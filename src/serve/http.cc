#include "serve/http.h"

#include <array>

#include "base/ascii.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::string_view kDigits =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
constexpr std::size_t kMostParameters = 64;
constexpr std::string_view kScheme = "http://";  // TLS is a proxy's

int hexadecimal(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

enum class Plus { kIsPlus, kIsSpace };
std::string percent_decoded(std::string_view text, Plus plus) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] != '%') {
      out += text[i] == '+' && plus == Plus::kIsSpace ? ' ' : text[i];
      continue;
    }
    const int high = i + 2 < text.size() ? hexadecimal(text[i + 1]) : -1;
    const int low = high < 0 ? -1 : hexadecimal(text[i + 2]);
    if (low < 0) throw ApiError(400, "the address has a % that is not followed by two digits");
    out += char(high * 16 + low);
    i += 2;
  }
  return out;
}

std::array<signed char, 256> values_of_digits() {
  std::array<signed char, 256> values{};
  values.fill(-1);
  for (std::size_t i = 0; i < kDigits.size(); ++i)
    values[static_cast<unsigned char>(kDigits[i])] = static_cast<signed char>(i);
  values['-'] = 62;  // of the alphabet for URLs (RFC 4648, section 5)
  values['_'] = 63;
  return values;
}

// A data URL without what precedes its base64 (RFC 2397); other text unchanged.
std::string_view without_data_head(std::string_view text, const std::string& param) {
  if (ascii_lower_case(text.substr(0, 5)) != "data:") return text;
  const auto comma = text.find(',');
  if (comma == text.npos || !ascii_lower_case(text.substr(0, comma)).ends_with(";base64"))
    refuse(param, "'" + param + "' should be a data URL in base64, as data:image/png;base64,...");
  return text.substr(comma + 1);
}

bool is_absolute(std::string_view target) {
  return ascii_lower_case(target.substr(0, kScheme.size())) == kScheme;
}

// Returns what follows the authority of an absolute address. The authority replaces the header
// `Host`, which must be there nevertheless (RFC 9112, 3.2 and 3.2.2).
std::string_view take_authority(std::string_view target, HttpRequest& request) {
  const auto host = request.headers.find("host");
  if (host == request.headers.end()) throw ApiError(400, "there is no Host header");
  target.remove_prefix(kScheme.size());
  const auto authority = target.substr(0, target.find_first_of("/?"));
  // RFC 9110, 4.2.1 and 4.2.4
  if (authority.empty() || authority.find('@') != authority.npos)
    throw ApiError(400, "the address should name a host, without a user");
  host->second = authority;
  target.remove_prefix(authority.size());
  return target;
}

}  // namespace

void read_target(std::string_view target, HttpRequest& request) {
  if (is_absolute(target))
    target = take_authority(target, request);
  else if (target.empty() || target.front() != '/')
    throw ApiError(400, "the address should begin with / or http://");
  const auto mark = target.find('?');
  request.path = percent_decoded(target.substr(0, mark), Plus::kIsPlus);
  if (request.path.empty()) request.path = "/";
  if (request.path.find('\0') != request.path.npos)
    throw ApiError(400, "the address has a NUL character");
  auto rest = mark == target.npos ? "" : target.substr(mark + 1);
  while (!rest.empty()) {
    const auto end = std::min(rest.find('&'), rest.size());
    const auto pair = rest.substr(0, end);
    const auto equals = std::min(pair.find('='), pair.size());
    const auto value = pair.substr(std::min(equals + 1, pair.size()));
    if (request.query.size() >= kMostParameters)
      throw ApiError(400, "there are too many parameters");
    request.query[percent_decoded(pair.substr(0, equals), Plus::kIsSpace)] =
        percent_decoded(value, Plus::kIsSpace);
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
}

std::string base64(std::string_view bytes) {
  std::string text;
  add_base64(text, bytes);
  return text;
}

void add_base64(std::string& text, std::string_view bytes) {
  auto at = text.size();
  text.resize(at + (bytes.size() + 2) / 3 * 4, '=');
  const auto digits_of = [&](unsigned three, int count) {
    for (int k = 0; k < count; ++k) text[at + std::size_t(k)] = kDigits[three >> (18 - 6 * k) & 63];
    at += 4;
  };
  const auto byte = [&](std::size_t i) { return unsigned(static_cast<unsigned char>(bytes[i])); };
  std::size_t i = 0;
  for (; i + 3 <= bytes.size(); i += 3)
    digits_of(byte(i) << 16 | byte(i + 1) << 8 | byte(i + 2), 4);
  if (i + 2 == bytes.size()) digits_of(byte(i) << 16 | byte(i + 1) << 8, 3);
  if (i + 1 == bytes.size()) digits_of(byte(i) << 16, 2);
}

std::string bytes_of_base64(std::string_view text, const std::string& param) {
  static const auto values = values_of_digits();
  text = without_data_head(text, param);
  while (text.ends_with('=') || text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  std::string bytes;
  bytes.reserve(text.size() * 3 / 4);
  unsigned bits = 0, held = 0;
  for (const char c : text) {
    const int value = values[static_cast<unsigned char>(c)];
    if (c == '\n' || c == '\r') continue;  // as MIME breaks lines
    if (value < 0) refuse(param, "'" + param + "' should be base64");
    held = (held << 6 | unsigned(value)) & 0xffff;
    bits += 6;
    if (bits >= 8) bytes += char(held >> (bits -= 8) & 0xff);
  }
  return bytes;
}

}  // namespace braid::serve
