// Who may ask: checked from a request's head, before its body is read.
#pragma once

#include <set>
#include <string>

#include "serve/http.h"

namespace braid::serve {

struct Access {
  std::string key = {};                // empty: none is asked for
  std::set<std::string> hosts = {};    // more names by which clients may know the server
  std::set<std::string> origins = {};  // more pages that may use it: "https://example.org"

  // Throws ApiError: 403 for a name or a page that is not the server's own, 401 without the key,
  // 415 for a body that a page may send without asking. Names in addresses are rebound to any
  // server's address; that address itself cannot be.
  void check(const HttpRequest& head) const;

  // What lets a page of `origins` read the answer; none for others.
  std::vector<std::pair<std::string, std::string>> headers_for(const HttpRequest& head) const;
};

// Compares in a time that does not depend on where they differ.
bool is_same_secret(const std::string& a, const std::string& b);

}  // namespace braid::serve
