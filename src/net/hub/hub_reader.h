// What a hub of models answers: a repository's files at a commit, their sizes and hashes, and their
// bytes. It waits where the hub asks for it, and tries again where a connection was cut.
#pragma once

#include <functional>

#include "base/hub_cache.h"
#include "net/http/web_client.h"
#include "net/hub/hub_access.h"

namespace braid::net {

struct HubListing {
  HubName name;
  std::string commit;              // 40 digits
  std::vector<std::string> paths;  // of files, checked: inside the repository's folder
};

struct HubFile {
  std::string path;
  std::uint64_t size = 0;  // bytes
  std::string etag;        // SHA-256 of the contents (64 digits), or git's SHA-1 (40)
};

// How often a request is tried while nothing arrives, and how long it is waited in between: twice
// as long each time, or as long as the hub says.
struct Patience {
  int attempts = 6;
  std::chrono::milliseconds first_wait{1000};
  std::chrono::seconds longest_wait{600};  // that a hub may ask for
  std::chrono::seconds silence{60};
};

// Asks on one thread.
class HubReader {
 public:
  using Say = std::function<void(const std::string&)>;
  using Take = std::function<void(std::string_view)>;

  HubReader(const HubAccess& access, const Patience& patience, std::stop_token stop, Say say);

  const std::stop_token& stop_token() const { return stop_; }

  // Each throws InputError if the hub refuses: no such repository, a licence to accept, a wrong
  // token; Error if it cannot be reached.
  HubListing list(const HubName& name);
  HubFile describe(const HubListing& listing, const std::string& path);
  // Calls `begin` with the offset from which bytes will come, the `offset` that is asked for or 0,
  // then `take` with the bytes. Returns when no more come; after a cut connection it asks for the
  // rest. Whether the size is right is left to the caller.
  void load(const HubListing& listing, const HubFile& file, std::uint64_t offset,
            const std::function<void(std::uint64_t)>& begin, const Take& take);

 private:
  WebAnswer ask_patiently(const std::function<WebRequest()>& request, const std::string& what);
  bool wait_before_retry(int attempt, const WebAnswer* answer);
  void pause(std::chrono::milliseconds time) const;
  WebRequest request_for(const std::string& path) const;
  [[noreturn]] void refuse(const WebAnswer& answer, const HubName& name,
                           const std::string& path) const;

  HubAccess access_;
  Patience patience_;
  std::stop_token stop_;
  Say say_;
  WebClient client_;
  std::uint64_t received_ = 0;  // bytes of bodies: attempts count anew when some arrive
};

}  // namespace braid::net
