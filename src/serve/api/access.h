// Access control, from a request's head, before its body is read.
#pragma once

#include <functional>
#include <set>
#include <string>
#include <string_view>

#include "serve/messages.h"

namespace braid::serve {

struct Access {
  std::string key = {};                // empty: no key is required
  std::set<std::string> hosts = {};    // further names of the server, as is_host_among() takes them
  std::set<std::string> origins = {};  // further pages that may use it, as of plain_origin()
  std::string base_path = {};          // where it stands for clients: "/pictures", or empty

  // Takes the prefix off the path, and sets how the client knows the server. Throws ApiError: 403
  // for a host name or page that is not the server's own; 401 without the key. A host name can be
  // rebound to any server's address (DNS rebinding); a literal address cannot, and who has the key
  // needs no rebinding. Health checks are answered under any name. What `is_open` accepts needs no
  // key.
  void admit(HttpRequest& head,
             const std::function<bool(const HttpRequest&)>& is_open = nullptr) const;

  // CORS headers that let a page in `origins` read the answer; for others only that it depends on
  // the origin.
  std::vector<std::pair<std::string, std::string>> headers_for(const HttpRequest& head) const;

 private:
  bool is_name_of(const HttpRequest& head, const std::string& host) const;
  bool trusts_forwarded_host(const HttpRequest& head) const;
  void check_host(const HttpRequest& head) const;
  void check_origin(const HttpRequest& head) const;
  bool has_key(const HttpRequest& head) const;
  void require_host(const HttpRequest& head) const;
};

// Throws ApiError 415 for a body type that any page may send without a preflight, and for
// compressed bodies.
void check_content_type(const HttpRequest& head);

// The first line of `text`, where a file has its key: without a byte order mark and blanks around.
std::string key_line(std::string_view text);
// The same for the key of this server. Throws InputError naming `what` for one that is short or
// long, or that clients would send in different bytes.
std::string key_in_text(std::string_view text, const std::string& what = "an API key");

// Compares in time independent of where they differ.
bool is_same_secret(const std::string& a, const std::string& b);

}  // namespace braid::serve
