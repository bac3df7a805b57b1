// An HTTP and HTTPS client. Redirects are followed here, not by the library below, so that what is
// secret provably stays with the host that it is meant for.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <stop_token>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"

namespace braid::net {

// Keys are names in lower case.
using Headers = std::map<std::string, std::string>;

enum class Redirects {
  kFollow,     // anywhere but from https to http
  kStayThere,  // on the same scheme, host and port; the answer is the redirect that leads away
};

struct WebAnswer {
  int status = 0;
  Headers headers = {};
  // The headers of all answers that the first host gave, later ones instead of earlier ones.
  Headers at_home = {};
  std::string host = {};  // of the last address
  std::string body = {};  // unless it went to `receive`

  std::string header(const std::string& name) const;  // empty if there is none
};

struct WebRequest {
  std::string url = {};
  std::string method = "GET";
  std::vector<std::string> headers = {};  // "accept: application/json"
  std::string bearer = {};                // a secret, sent to the origin of `url` alone
  std::string body = {};
  std::uint64_t offset = 0;  // asks for the body from this byte on
  Redirects redirects = Redirects::kFollow;
  std::uint64_t max_body = std::uint64_t(16) << 20;  // bytes; of what `receive` does not take
  std::chrono::milliseconds deadline = {};           // for the whole answer; 0: none
  std::chrono::seconds silence{60};                  // after which a connection counts as lost
  std::stop_token stop = {};
  // Takes the body of a success, piece by piece; may throw.
  std::function<void(const WebAnswer& head, std::string_view bytes)> receive = {};
};

// No answer came, or not all of it.
class WebFailure : public Error {
 public:
  enum class Kind {
    kPassing,   // another attempt may succeed: a cut connection, a host that is not reached
    kDeadline,  // the request's own
    kLasting,   // such as a certificate that is not trusted
  };
  WebFailure(Kind kind, const std::string& sentence) : Error(sentence), kind_(kind) {}
  Kind kind() const { return kind_; }

 private:
  Kind kind_;
};

// Keeps its connections between requests. One thread at a time.
class WebClient {
 public:
  WebClient();  // throws InputError in a build without libcurl
  WebClient(WebClient&&) noexcept;
  ~WebClient();

  // The answer, whatever its status is. Throws WebFailure, and Cancelled.
  WebAnswer ask(const WebRequest& request);

 private:
  struct Session;
  std::unique_ptr<Session> session_;
};

bool has_web_client();  // else this build lacks libcurl

// Returns the host of an address without user and password: "huggingface.co", "127.0.0.1:8188".
std::string host_of_url(const std::string& url);
// Returns the address itself without user and password, for messages.
std::string shown_url(const std::string& url);
// Throws InputError naming `what` unless it is a http or https address.
void require_web_address(const std::string& what, const std::string& url,
                         const std::string& example = "https://huggingface.co");

}  // namespace braid::net
