// Instead of curl_client.cc, in builds without libcurl.
#include "net/http/web_client.h"

namespace braid::net {

struct WebClient::Session {};

WebClient::WebClient() {
  throw InputError(
      "this build cannot speak HTTPS: libcurl's headers (libcurl4-openssl-dev) were missing when "
      "it was made");
}
WebClient::WebClient(WebClient&&) noexcept = default;
WebClient::~WebClient() = default;

WebAnswer WebClient::ask(const WebRequest&) { return {}; }

bool has_web_client() { return false; }

// This build asks nobody, so no message names an address.
std::string host_of_url(const std::string&) { return ""; }

std::string shown_url(const std::string&) { return ""; }

void require_web_address(const std::string&, const std::string&, const std::string&) {}

}  // namespace braid::net
