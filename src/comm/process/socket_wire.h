// Messages over one TCP connection to each other process.
#pragma once

#include <deque>
#include <map>
#include <vector>

#include "base/file_descriptor.h"
#include "comm/process/wire.h"

namespace braid {

class SocketWire : public Wire {
 public:
  // sockets[r] is connected to rank r; there is none to itself.
  SocketWire(int rank, std::vector<FileDescriptor> sockets);

  int rank() const override { return rank_; }
  int size() const override { return int(peers_.size()); }
  Ticket send(const Message& message) override;
  Ticket receive(const Message& message) override;
  Events poll(std::chrono::microseconds at_most) override;
  void drop(int peer, std::uint64_t bytes) override;
  bool is_dropping() const override { return false; }
  void wake() noexcept override;
  void close() override { end(std::chrono::seconds(2)); }
  void abandon() override { end(std::chrono::milliseconds(500)); }

 private:
  // Precedes the bytes of every message.
  struct Header {
    std::int64_t channel;
    std::uint64_t size;
  };
  struct Outgoing {
    Ticket ticket;
    Header header;
    const std::byte* data;
    std::size_t sent = 0;  // of header and data together
  };
  struct Expected {
    Ticket ticket;
    std::byte* data;
    std::size_t size;
  };
  struct Peer {
    int rank = 0;
    FileDescriptor socket;  // not open: lost, or this rank itself
    std::deque<Outgoing> outgoing;
    std::map<std::int64_t, std::deque<Expected>> expected;                  // by channel
    std::map<std::int64_t, std::deque<std::vector<std::byte>>> unexpected;  // arrived early
    // The message being received.
    Header header{};
    std::size_t header_read = 0, data_read = 0;
    std::vector<std::byte> buffer;  // until someone expects it
    std::byte* target = nullptr;    // its destination
    Ticket ticket = 0;              // 0: goes to the buffer
  };

  void end(std::chrono::milliseconds patience);
  void write_some(Peer& peer, Events& events);
  void read_some(Peer& peer, Events& events);
  bool read_header(Peer& peer, Events& events);
  void begin_message(Peer& peer);
  void end_message(Peer& peer, Events& events);
  void lose(Peer& peer, const std::string& why, Events& events);
  std::ptrdiff_t read_into(Peer& peer, std::byte* data, std::size_t size, Events& events);

  int rank_;
  FileDescriptor waker_;
  Ticket next_ticket_ = 1;
  std::vector<Peer> peers_;
  std::vector<Ticket> done_early_;  // receives whose data had already arrived
};

}  // namespace braid
