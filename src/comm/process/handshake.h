// What two ranks say first on a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <deque>
#include <optional>

#include "comm/process/sockets.h"

namespace braid {

// Counts the changes of what processes send each other: this handshake, the headers of messages,
// control messages and notes.
inline constexpr std::uint32_t kWireVersion = 1;

// The first bytes on a connection. Every version has these fields at these places, so that ranks of
// two versions can name them. The token tells the ranks of one meeting from those of another; it is
// no secret, since whoever reaches the store where ranks meet can read it.
struct Handshake {
  static constexpr std::uint64_t kMagic = 0x6b6e'6172'6469'6172;  // "raidrank"

  std::uint64_t magic = kMagic;
  std::uint32_t version = kWireVersion;
  std::int32_t rank = 0;
  std::uint64_t token = 0;
};
static_assert(sizeof(Handshake) == 24, "a handshake has no gaps");

void send_handshake(const FileDescriptor& socket, const Handshake& handshake);

// Connections whose handshakes are awaited together, so that a silent one delays no other.
class AwaitedHandshakes {
 public:
  using Clock = std::chrono::steady_clock;

  struct Heard {
    FileDescriptor socket;
    int expected;         // as it was given
    Handshake handshake;  // with another magic if the connection ended before it was complete
    bool is_handshake() const { return handshake.magic == Handshake::kMagic; }
  };

  // Beyond `most` connections of unknown ranks, the one that has been silent longest is closed.
  explicit AwaitedHandshakes(std::size_t most) : most_(most) {}

  void add(FileDescriptor socket, int expected = kUnknown);
  // The next connection that has sent its handshake or has ended; none if that takes until `end`.
  // Connections that come to `listener`, if there is one, are added. Throws Error.
  std::optional<Heard> next(Clock::time_point end, const Listener* listener = nullptr);

 private:
  static constexpr int kUnknown = -1;
  struct Silent {
    FileDescriptor socket;
    int expected;
    Handshake handshake{.magic = 0, .version = 0};
    std::size_t count = 0;  // of its bytes, read so far
  };

  std::optional<Heard> read(std::size_t at);

  std::size_t most_;
  std::deque<Silent> silent_;  // the oldest first
};

}  // namespace braid
