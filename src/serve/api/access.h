// Access control, from a request's head, before its body is read.
#pragma once

#include <set>
#include <string>

#include "serve/http.h"

namespace braid::serve {

struct Access {
  std::string key = {};                // empty: no key is required
  std::set<std::string> hosts = {};    // further names of the server
  std::set<std::string> origins = {};  // further pages that may use it: "https://example.org"

  // Throws ApiError: 403 for a host name or page that is not the server's own; 401 without the key;
  // 415 for a body type that any page may send without a preflight. A host name can be rebound to
  // any server's address (DNS rebinding); a literal address cannot.
  void check(const HttpRequest& head) const;

  // CORS headers that let a page in `origins` read the answer; for others only that it depends on
  // the origin.
  std::vector<std::pair<std::string, std::string>> headers_for(const HttpRequest& head) const;
};

// Compares in time independent of where they differ.
bool is_same_secret(const std::string& a, const std::string& b);

}  // namespace braid::serve
