#include "serve/api/address.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>

#include "base/ascii.h"
#include "serve/api_error.h"

namespace braid::serve {
namespace {

constexpr std::size_t kLongestPrefix = 200;

// Proxies append to a list; its first element is what the one next to the client said.
std::string_view first_of(std::string_view list) { return trimmed(list.substr(0, list.find(','))); }

std::string_view without_end(std::string_view text, std::string_view end) {
  if (text.ends_with(end)) text.remove_suffix(end.size());
  return text;
}

bool is_ascii_alphanumeric(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
}

bool is_plain_in_paths(char c) {
  return is_ascii_alphanumeric(c) || std::string_view("/-._~@:+").find(c) != std::string_view::npos;
}

// Several proxies may each have taken a part off; the one next to the client comes first.
std::string forwarded_prefix(const HttpRequest& head) {
  const auto list = head.header("x-forwarded-prefix");
  std::string prefix;
  try {
    for (std::string_view rest = list; !rest.empty();) {
      const auto end = std::min(rest.find(','), rest.size());
      prefix += plain_prefix(trimmed(rest.substr(0, end)));
      rest.remove_prefix(std::min(end + 1, rest.size()));
    }
  } catch (const ApiError&) {
    return "";  // not a path: it would lead elsewhere
  }
  return prefix;
}

bool is_below(const std::string& path, const std::string& prefix) {
  return path.starts_with(prefix) && (path.size() == prefix.size() || path[prefix.size()] == '/');
}

}  // namespace

std::string host_name(std::string_view host) {
  const auto colon = host.rfind(':');
  const auto bracket = host.rfind(']');
  const bool has_port = colon != host.npos && (bracket == host.npos || colon > bracket);
  return ascii_lower_case(without_end(has_port ? host.substr(0, colon) : host, "."));
}

bool is_plain_host(std::string_view host) {
  const bool has_brackets = host.starts_with('[');  // around an address of IPv6
  const auto end = has_brackets ? host.find(']') : std::min(host.find(':'), host.size());
  if (end == host.npos) return false;
  const auto name = host.substr(has_brackets ? 1 : 0, has_brackets ? end - 1 : end);
  const auto port = host.substr(has_brackets ? end + 1 : end);
  const std::string_view others = has_brackets ? ":." : "-._~%";
  return !name.empty() && (port.empty() || port.front() == ':') &&
         std::ranges::all_of(
             name,
             [&](char c) { return is_ascii_alphanumeric(c) || others.find(c) != others.npos; }) &&
         port.find_first_not_of("0123456789", 1) == port.npos;
}

std::string address_to_listen_on(std::string_view address) {
  if (ascii_lower_case(address) == "localhost") return "127.0.0.1";
  const bool has_brackets = address.starts_with('[') && address.ends_with(']');
  return std::string(has_brackets ? address.substr(1, address.size() - 2) : address);
}

bool is_own_address(std::string_view address) {
  const auto plain = address_to_listen_on(address);
  boost::system::error_code is_no_number;
  const auto ip = boost::asio::ip::make_address(plain, is_no_number);
  return plain.starts_with("unix:") || (!is_no_number && ip.is_loopback());
}

bool is_host_among(const std::set<std::string>& patterns, const std::string& name) {
  if (name.empty()) return false;
  return std::ranges::any_of(patterns, [&](std::string_view pattern) {
    if (pattern == name) return true;
    if (pattern.starts_with("*.")) return name.ends_with(pattern.substr(1));
    return pattern.starts_with('.') && (name.ends_with(pattern) || name == pattern.substr(1));
  });
}

std::string plain_origin(std::string_view origin) {
  const auto lower = ascii_lower_case(origin);
  if (lower.starts_with("http://")) return std::string(without_end(lower, ":80"));
  if (lower.starts_with("https://")) return std::string(without_end(lower, ":443"));
  return lower;
}

std::string plain_prefix(std::string_view prefix) {
  while (prefix.ends_with('/')) prefix.remove_suffix(1);
  const bool is_path = prefix.starts_with('/') && prefix.size() <= kLongestPrefix &&
                       prefix.find("//") == prefix.npos && prefix.find("/..") == prefix.npos &&
                       std::ranges::all_of(prefix, is_plain_in_paths);
  if (!prefix.empty() && !is_path)
    throw ApiError(400, "a base path should be a path such as /pictures, it is '" +
                            std::string(prefix.substr(0, kLongestPrefix)) + "'");
  return std::string(prefix);
}

void take_prefix(HttpRequest& head, const std::string& base_path) {
  const auto said = forwarded_prefix(head);
  head.prefix = said.empty() ? base_path : said;
  for (const auto& prefix : {said, base_path}) {
    if (prefix.empty() || !is_below(head.path, prefix)) continue;
    head.path.erase(0, prefix.size());
    if (head.path.empty()) head.path = "/";
    return;
  }
}

std::string forwarded_host(const HttpRequest& head) {
  const auto host = std::string(first_of(head.header("x-forwarded-host")));
  return is_plain_host(host) ? host : "";
}

std::string client_scheme(const HttpRequest& head) {
  const auto said = ascii_lower_case(first_of(head.header("x-forwarded-proto")));
  return said == "https" ? "https" : "http";
}

}  // namespace braid::serve
