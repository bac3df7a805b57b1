#include "serve/api/access.h"

#include <algorithm>

#include "base/ascii.h"
#include "base/error.h"
#include "serve/api/address.h"
#include "serve/api_error.h"
#include "serve/body/fields.h"
#include "serve/page/page_files.h"

namespace braid::serve {
namespace {

constexpr std::size_t kShortestKey = 16, kLongestKey = 4096;
constexpr std::string_view kByteOrderMark = "\xef\xbb\xbf";  // U+FEFF, as some editors write it

// "This machine", also as servers print it that listen everywhere.
const std::set<std::string> kOwnNames = {"localhost", "127.0.0.1", "[::1]", "0.0.0.0", "[::]"};

bool is_health_check(const std::string& path) {
  return path == "/livez" || path == "/readyz" || path == "/health";
}

// Open to all: health checks, and the page that asks for the key.
bool is_public(const std::string& path) {
  const auto files = page_files();
  const auto is_named = [&](const PageFile& file) {
    return path.substr(1) == file.name && path != "/openapi.json";
  };
  return path == "/" || is_health_check(path) || std::any_of(files.begin(), files.end(), is_named);
}

// "Bearer KEY", or the password of "Basic BASE64", as older clients send it; empty otherwise.
std::string key_in(const std::string& authorization) {
  const auto space = std::min(authorization.find(' '), authorization.size());
  const auto scheme = ascii_lower_case(authorization.substr(0, space));
  const std::string rest(trimmed(authorization.substr(space)));  // RFC 9110, 11.4: spaces
  if (scheme == "bearer") return rest;
  if (scheme != "basic") return "";
  try {
    const auto pair = bytes_of_base64(rest, "authorization");
    return pair.substr(std::min(pair.find(':') + 1, pair.size()));
  } catch (const ApiError&) {
    return "";
  }
}

// Clients of the web UI's API may send a name and a password only when they are asked (RFC 7617). A
// browser would ask its user beside the page's own dialog: pages send their origin.
ApiError no_key(const HttpRequest& head) {
  ApiError error(401, "this server asks for its API key", "invalid_api_key");
  const bool asks_for_password = head.path.starts_with("/sdapi/") && head.header("origin").empty();
  error.challenge = asks_for_password ? "Basic realm=\"braid\"" : "Bearer";
  return error;
}

// Endpoints that accept multipart forms.
bool takes_forms(const std::string& path) {
  return path == "/v1/images/edits" || path == "/v1/jobs";
}

// What is no name would lead elsewhere in the addresses of answers (RFC 9112, section 3.2).
void require_plain_host(const HttpRequest& head) {
  const auto host = head.header("host");
  if (!host.empty() && !is_plain_host(host) && !is_health_check(head.path))
    throw ApiError(400,
                   "the Host header should be a name or an address, and a port if any, it is '" +
                       host.substr(0, 100) + "'",
                   "bad_request");
}

}  // namespace

void check_content_type(const HttpRequest& head) {
  if (head.method != "POST") return;
  const auto coding = ascii_lower_case(head.header("content-encoding"));
  if (!coding.empty() && coding != "identity")
    throw ApiError(415, "the body should not be compressed, it is '" + coding.substr(0, 100) + "'",
                   "unsupported_content_encoding");
  const auto type = ascii_lower_case(head.header("content-type"));
  const auto name = std::string(trimmed(type.substr(0, type.find(';'))));
  const auto length = head.header("content-length");
  const bool is_empty =
      (length.empty() || length == "0") && head.header("transfer-encoding").empty();
  if (name == "multipart/form-data" && takes_forms(head.path)) return;
  if (name == "application/json" || is_empty) return;
  const std::string forms = takes_forms(head.path) ? " or multipart/form-data" : "";
  throw ApiError(415,
                 "the content type should be application/json" + forms + ", it is '" +
                     name.substr(0, 100) + "'",
                 "unsupported_content_type");
}

std::string key_line(std::string_view text) {
  if (text.starts_with(kByteOrderMark)) text.remove_prefix(kByteOrderMark.size());
  return std::string(trimmed(text.substr(0, text.find_first_of("\r\n"))));
}

std::string key_in_text(std::string_view text, const std::string& what) {
  const auto key = key_line(text);
  const auto is_control = [](unsigned char c) { return c < ' ' || c == 127; };
  const auto is_ascii = [](unsigned char c) { return c < 128; };
  require(key.size() >= kShortestKey, what, " should have at least ", kShortestKey,
          " characters, it has ", key.size());
  require(key.size() <= kLongestKey, what, " should have at most ", kLongestKey,
          " characters, since a request's head has little room, it has ", key.size());
  require(std::ranges::none_of(key, is_control), what,
          " should have no control characters: clients cannot send them");
  require(std::ranges::all_of(key, is_ascii), what,
          " should have ASCII characters alone: clients send others in different bytes");
  return key;
}

bool is_same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned(static_cast<unsigned char>(a[i])) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

bool Access::is_name_of(const HttpRequest& head, const std::string& host) const {
  const auto name = host_name(host);
  const auto own = head.server_address.find(':') == std::string::npos
                       ? head.server_address
                       : "[" + head.server_address + "]";
  return kOwnNames.contains(name) || (!name.empty() && name == own) || is_host_among(hosts, name);
}

// Otherwise a page whose name is rebound could give itself any other.
bool Access::trusts_forwarded_host(const HttpRequest& head) const {
  const auto host = forwarded_host(head);
  return !host.empty() && (!key.empty() || is_name_of(head, host));
}

// HAProxy's health checks ask for OPTIONS.
void Access::check_host(const HttpRequest& head) const {
  const auto host = head.header("host");
  if (is_health_check(head.path) || host.empty()) return;
  const bool tells_nothing = head.method == "OPTIONS" && head.header("origin").empty();
  if (!key.empty() || tells_nothing || is_name_of(head, host)) return;
  throw ApiError(403,
                 "this server is not known as '" + host_name(host).substr(0, 100) +
                     "': start it with --allow-host to allow that name, or with a key",
                 "host_not_allowed");
}

// The server's own page, also behind a proxy that adds TLS.
void Access::check_origin(const HttpRequest& head) const {
  if (head.header("origin").empty()) return;
  const auto origin = plain_origin(head.header("origin"));
  const auto is_of = [&](const std::string& host) {
    return !host.empty() &&
           (origin == plain_origin("http://" + host) || origin == plain_origin("https://" + host));
  };
  if (is_of(head.header("host")) || origins.contains(origin)) return;
  if (trusts_forwarded_host(head) && is_of(forwarded_host(head))) return;
  throw ApiError(403,
                 "pages of '" + origin.substr(0, 100) +
                     "' may not use this server: start it with --allow-origin to allow them",
                 "origin_not_allowed");
}

// True also where none is asked for.
bool Access::has_key(const HttpRequest& head) const {
  return key.empty() || is_public(head.path) ||
         is_same_secret(key_in(head.header("authorization")), key);
}

// Browsers always send a name, so what comes without one is no page's.
void Access::require_host(const HttpRequest& head) const {
  const bool may_lack_host = head.version == 10 || is_health_check(head.path);
  if (head.header("host").empty() && !may_lack_host)
    throw ApiError(400, "there is no Host header", "bad_request");
}

void Access::admit(HttpRequest& head,
                   const std::function<bool(const HttpRequest&)>& is_open) const {
  take_prefix(head, base_path);
  require_plain_host(head);
  check_host(head);
  check_origin(head);
  if (head.method != "OPTIONS" && !has_key(head) && !(is_open && is_open(head))) throw no_key(head);
  require_host(head);
  const auto host = trusts_forwarded_host(head) ? forwarded_host(head) : head.header("host");
  if (!host.empty()) head.site = client_scheme(head) + "://" + host;
}

std::vector<std::pair<std::string, std::string>> Access::headers_for(
    const HttpRequest& head) const {
  if (origins.empty()) return {};
  std::vector<std::pair<std::string, std::string>> headers = {{"vary", "origin"}};
  const auto origin = head.header("origin");
  if (!origins.contains(plain_origin(origin))) return headers;
  headers.emplace_back("access-control-allow-origin", origin);
  headers.emplace_back("access-control-expose-headers",
                       "location, retry-after, x-request-id, x-should-retry");
  if (head.method != "OPTIONS") return headers;
  headers.emplace_back("access-control-allow-methods", "GET, POST, DELETE");
  // Clients add headers of their own, as OpenAI's x-stainless-lang.
  const auto asked = head.header("access-control-request-headers");
  headers.emplace_back("access-control-allow-headers",
                       asked.empty() ? "authorization, content-type, last-event-id" : asked);
  headers.emplace_back("access-control-max-age", "600");
  return headers;
}

}  // namespace braid::serve
