// Addresses as clients know them: host names, origins of pages, and what proxies add.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "serve/messages.h"

namespace braid::serve {

// "LocalHost.:8188" -> "localhost", "[::1]:8188" -> "[::1]"
std::string host_name(std::string_view host);

// Whether it is a name or an address with or without a port, as in RFC 3986, of the characters that
// names of hosts have.
bool is_plain_host(std::string_view host);

// An address to listen on as the system takes it: "[::1]" -> "::1", "LocalHost" -> "127.0.0.1";
// others, such as "unix:PATH", unchanged.
std::string address_to_listen_on(std::string_view address);
// Whether only this machine reaches such an address.
bool is_own_address(std::string_view address);

// Whether one of the patterns is the name, or ".example.org", which stands for example.org and all
// names below it, or "*.example.org", which stands for those below it alone.
bool is_host_among(const std::set<std::string>& patterns, const std::string& name);

// An origin in lower case and without its scheme's default port: "https://Example.org:443" ->
// "https://example.org"; also "null" and "file://", as browsers send them.
std::string plain_origin(std::string_view origin);

// A path to stand below: "/pictures/" -> "/pictures", "/" -> "". Throws ApiError unless it begins
// with one slash and has only characters that need no escape in addresses and pages.
std::string plain_prefix(std::string_view prefix);

// Sets `prefix` to where the server stands for its client: what the proxy says, or else
// `base_path`. Removes it from the path, if the proxy has not.
void take_prefix(HttpRequest& head, const std::string& base_path);

// The client's name for the server, according to a proxy; empty if there is none, or no name.
std::string forwarded_host(const HttpRequest& head);
// "https" or "http": the scheme that the client uses.
std::string client_scheme(const HttpRequest& head);

}  // namespace braid::serve
