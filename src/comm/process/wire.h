// Bytes between processes, started now and completed by polling. One thread at a time uses a wire.
//
// Knows nothing of tensors or of this project's other libraries, so that a wire may live in a
// module that is loaded only where needed.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace braid {

class Wire {
 public:
  using Ticket = std::uint64_t;

  // Messages about the ranks themselves take this channel and are never dropped.
  static constexpr int kControl = 0;

  // A message to or from `peer`. Messages between two ranks on one channel arrive in the order they
  // were started; channels are independent.
  struct Message {
    int peer;
    int channel;
    std::byte* data;  // must stay valid until the ticket is done; only read when sending
    std::size_t size;
  };

  struct Lost {
    int peer;
    std::string why;
  };

  struct Events {
    std::vector<Ticket> done;
    std::vector<Lost> lost;  // peers now unreachable, each named once
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Ticket send(const Message& message) = 0;
  virtual Ticket receive(const Message& message) = 0;

  // Advances what was started. Returns when something happened, when woken, or after `at_most`.
  // Throws std::runtime_error if the wire itself fails.
  virtual Events poll(std::chrono::microseconds at_most) = 0;
  // Discards all non-control messages `peer` has sent, `bytes` since the wire began. Receives from
  // it are forgotten (their tickets never complete), and what still arrives is dropped. Call it
  // once a control message has said that `peer` has sent all this and is sending nothing for now.
  // Polls continue the work until nothing is left to drop.
  virtual void drop(int peer, std::uint64_t bytes) = 0;
  virtual bool is_dropping() const = 0;

  // Ends a poll early. May be called from any thread.
  virtual void wake() noexcept = 0;

  // Orderly end, after the last message was delivered.
  virtual void close() = 0;
  // End after a failure. Sent messages still arrive; waits at most half a second.
  virtual void abandon() = 0;
};

}  // namespace braid
