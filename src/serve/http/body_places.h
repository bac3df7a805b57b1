// Room for bodies that are read and handled at the same time: they take memory.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

namespace braid::serve {

class BodyPlaces {
 public:
  // What a client has claimed.
  struct Held {
    std::string client = {};
    int places = 0;
  };

  // The places taken by a body of so many bytes; a body of unknown length may be large. `client` is
  // an address, or "unix" for any client of a Unix socket. Nothing if too many are taken, or if the
  // address would have more than half of all: one keeps nobody out.
  std::optional<Held> claim(const std::string& client, std::optional<std::uint64_t> bytes) {
    const int wanted = bytes && *bytes <= kSmall ? 0 : bytes && *bytes <= kLarge ? 1 : kOfLarge;
    if (wanted == 0) return Held{};
    const int most = client == "unix" ? kMost : kMost / 2;
    if (taken_ + wanted > kMost || taken_by(client) + wanted > most) return {};
    taken_ += wanted;
    taken_by_[client] += wanted;
    return Held{client, wanted};
  }
  void release(const Held& held) {
    if (held.places == 0) return;
    taken_ -= held.places;
    const auto of_client = taken_by_.find(held.client);
    if ((of_client->second -= held.places) == 0) taken_by_.erase(of_client);
  }

 private:
  static constexpr std::uint64_t kSmall = 2 << 10, kLarge = 256 << 10;  // bytes
  static constexpr int kMost = 64, kOfLarge = 4;

  int taken_by(const std::string& client) const {
    const auto it = taken_by_.find(client);
    return it == taken_by_.end() ? 0 : it->second;
  }

  int taken_ = 0;
  std::map<std::string, int> taken_by_;
};

}  // namespace braid::serve
