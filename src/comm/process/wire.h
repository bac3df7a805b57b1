// Bytes between processes, started now and completed by polling. One thread at a time uses a wire.
//
// Knows nothing of tensors or of this project's other libraries: a wire may live in a module that
// is loaded only where it is needed.
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

  // Of messages about the ranks themselves, which are never dropped.
  static constexpr int kControl = 0;

  // What goes to or comes from `peer`. Messages between the same two ranks on the same channel
  // arrive in the order in which they were started; different channels do not see each other.
  struct Message {
    int peer;
    int channel;
    std::byte* data;  // must stay until the ticket is done; only read when sending
    std::size_t size;
  };

  struct Lost {
    int peer;
    std::string why;
  };

  struct Events {
    std::vector<Ticket> done;
    std::vector<Lost> lost;  // peers that can no longer be reached, each named once
  };

  virtual ~Wire() = default;
  virtual int rank() const = 0;
  virtual int size() const = 0;

  virtual Ticket send(const Message& message) = 0;
  virtual Ticket receive(const Message& message) = 0;

  // Goes on with what was started; returns when something happened, when woken, or after
  // `at_most`. Throws std::runtime_error when the wire itself fails.
  virtual Events poll(std::chrono::microseconds at_most) = 0;
  // What `peer` has sent but for control messages, `bytes` since the wire began, is of no use any
  // more: forgets all receives of it, whose tickets are never done, and drops what still comes.
  // Call it when a control message told that `peer` has sent all this and sends nothing for now.
  // Polls go on with it until nothing is left to drop.
  virtual void drop(int peer, std::uint64_t bytes) = 0;
  virtual bool is_dropping() const = 0;

  // Ends a poll early. May be called from any thread.
  virtual void wake() noexcept = 0;

  // The orderly end, after the last message was delivered.
  virtual void close() = 0;
  // The end after a failure. What was sent still arrives; waits for nobody longer than half a
  // second.
  virtual void abandon() = 0;
};

}  // namespace braid
