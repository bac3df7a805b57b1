// A request as a server of tests reads it.
#pragma once

#include <sys/socket.h>

#include <array>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "base/ascii.h"

namespace braid::net {

struct AskedOverHttp {
  std::string method, path, key, body;  // `key`: the authorization header
  nlohmann::json json() const { return nlohmann::json::parse(body); }
};

// The value of a header; empty if there is none.
inline std::string header_in(const std::string& head, const std::string& name) {
  const auto at = ascii_lower_case(head).find("\r\n" + name + ": ");
  if (at == head.npos) return "";
  const auto begin = at + name.size() + 4;
  return head.substr(begin, head.find("\r\n", begin) - begin);
}

// Nothing if the client leaves before its end.
inline std::optional<AskedOverHttp> read_request(int socket) {
  std::string text;
  const auto more = [&] {
    std::array<char, 65536> buffer{};
    const auto n = ::recv(socket, buffer.data(), buffer.size(), 0);
    if (n > 0) text.append(buffer.data(), std::size_t(n));
    return n > 0;
  };
  while (text.find("\r\n\r\n") == text.npos)
    if (!more()) return {};
  const auto head = text.substr(0, text.find("\r\n\r\n"));
  text.erase(0, head.size() + 4);
  const auto length = header_in(head, "content-length");
  while (!length.empty() && text.size() < std::stoul(length))
    if (!more()) return {};
  const auto space = head.find(' ');
  return AskedOverHttp{.method = head.substr(0, space),
                       .path = head.substr(space + 1, head.find(' ', space + 1) - space - 1),
                       .key = header_in(head, "authorization"),
                       .body = text};
}

}  // namespace braid::net
