#include "serve/api/access.h"

#include <algorithm>

#include "base/ascii.h"
#include "serve/api_error.h"
#include "serve/page/page_files.h"

namespace braid::serve {
namespace {

const std::set<std::string> kOwnNames = {"localhost", "127.0.0.1", "[::1]"};

// Open to all: health checks, and the page that asks for the key.
bool is_public(const std::string& path) {
  static const std::set<std::string> kOthers = {"/", "/livez", "/readyz", "/health"};
  const auto files = page_files();
  const auto is_named = [&](const PageFile& file) {
    return path.substr(1) == file.name && path != "/openapi.json";
  };
  return kOthers.contains(path) || std::any_of(files.begin(), files.end(), is_named);
}

// "localhost:8188" -> "localhost", "[::1]:8188" -> "[::1]"
std::string name_of_host(const std::string& host) {
  const auto colon = host.rfind(':');
  const auto bracket = host.rfind(']');
  const bool has_port = colon != host.npos && (bracket == host.npos || colon > bracket);
  return ascii_lower_case(has_port ? host.substr(0, colon) : host);
}

void check_host(const HttpRequest& head, const std::set<std::string>& more) {
  const auto name = name_of_host(head.header("host"));
  const auto own = head.server_address.find(':') == std::string::npos
                       ? head.server_address
                       : "[" + head.server_address + "]";
  if (kOwnNames.contains(name) || name == own || more.contains(name)) return;
  if (name.empty()) throw ApiError(400, "there is no Host header");
  throw ApiError(403,
                 "this server is not known as '" + name.substr(0, 100) +
                     "': start it with --allow-host to allow that name",
                 "host_not_allowed");
}

// The server's own page, also behind a proxy that adds TLS.
bool is_own_page(const HttpRequest& head, const std::string& origin) {
  const auto host = ascii_lower_case(head.header("host"));
  return origin == "http://" + host || origin == "https://" + host;
}

void check_origin(const HttpRequest& head, const std::set<std::string>& more) {
  const auto origin = ascii_lower_case(head.header("origin"));
  if (origin.empty() || is_own_page(head, origin) || more.contains(origin)) return;
  throw ApiError(403,
                 "pages of '" + origin.substr(0, 100) +
                     "' may not use this server: start it with --allow-origin to allow them",
                 "origin_not_allowed");
}

// "Bearer KEY", or the password of "Basic BASE64", as older clients send it; empty otherwise.
std::string key_in(const std::string& authorization) {
  const auto space = std::min(authorization.find(' '), authorization.size());
  const auto scheme = ascii_lower_case(authorization.substr(0, space));
  const auto rest = authorization.substr(std::min(space + 1, authorization.size()));
  if (scheme == "bearer") return rest;
  if (scheme != "basic") return "";
  try {
    const auto pair = bytes_of_base64(rest, "authorization");
    return pair.substr(std::min(pair.find(':') + 1, pair.size()));
  } catch (const ApiError&) {
    return "";
  }
}

void check_key(const HttpRequest& head, const std::string& key) {
  if (key.empty() || is_public(head.path)) return;
  if (is_same_secret(key_in(head.header("authorization")), key)) return;
  throw ApiError(401, "this server asks for its API key", "invalid_api_key");
}

// Endpoints that accept multipart forms.
bool takes_forms(const std::string& path) {
  return path == "/v1/images/edits" || path == "/v1/jobs";
}

void check_content_type(const HttpRequest& head) {
  if (head.method != "POST") return;
  const auto coding = ascii_lower_case(head.header("content-encoding"));
  if (!coding.empty() && coding != "identity")
    throw ApiError(415, "the body should not be compressed, it is '" + coding.substr(0, 100) + "'",
                   "unsupported_content_encoding");
  const auto type = ascii_lower_case(head.header("content-type"));
  const auto name = std::string(trimmed(type.substr(0, type.find(';'))));
  const bool is_empty =
      head.header("content-length") == "0" || head.header("content-length").empty();
  if (name == "multipart/form-data" && takes_forms(head.path)) return;
  if (name == "application/json" ||
      (name.empty() && is_empty && head.header("transfer-encoding").empty()))
    return;
  throw ApiError(415,
                 "the content type should be application/json, it is '" + name.substr(0, 100) + "'",
                 "unsupported_content_type");
}

}  // namespace

bool is_same_secret(const std::string& a, const std::string& b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < a.size(); ++i)
    difference |= unsigned(static_cast<unsigned char>(a[i])) ^
                  static_cast<unsigned char>(b.empty() ? 0 : b[i % b.size()]);
  return difference == 0;
}

void Access::check(const HttpRequest& head) const {
  check_host(head, hosts);
  check_origin(head, origins);
  if (head.method == "OPTIONS") return;
  check_key(head, key);
  check_content_type(head);
}

std::vector<std::pair<std::string, std::string>> Access::headers_for(
    const HttpRequest& head) const {
  if (origins.empty()) return {};
  std::vector<std::pair<std::string, std::string>> headers = {{"vary", "origin"}};
  const auto origin = head.header("origin");
  if (!origins.contains(ascii_lower_case(origin))) return headers;
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
