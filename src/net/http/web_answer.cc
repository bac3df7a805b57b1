#include "net/http/web_client.h"

namespace braid::net {

std::string WebAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? "" : found->second;
}

}  // namespace braid::net
