#include "comm/process/socket_wire.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <thread>
#include <utility>

#include "comm/process/sockets.h"

namespace braid {
namespace {

// A process that receives a larger header is not talking to its own kind.
constexpr std::uint64_t kLargestMessage = 1ull << 40;
// Reads or writes on one socket before the next gets its turn.
constexpr int kTurns = 16;

const char* const kEnded = "its process has ended";

// Why a connection failed. A process that exits with unread messages resets its connections.
std::string why() {
  if (errno == ECONNRESET || errno == EPIPE) return kEnded;
  return "its connection failed: " + socket_error();
}

}  // namespace

SocketWire::SocketWire(int rank, std::vector<FileDescriptor> sockets)
    : rank_(rank), waker_(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC)), peers_(sockets.size()) {
  if (!waker_.is_open()) throw std::runtime_error("cannot make an event: " + socket_error());
  for (std::size_t r = 0; r < sockets.size(); ++r) {
    peers_[r].rank = int(r);
    if (int(r) == rank) continue;
    const int socket = sockets[r].get(), on = 1;
    ::setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    ::fcntl(socket, F_SETFL, ::fcntl(socket, F_GETFL) | O_NONBLOCK);
    peers_[r].socket = std::move(sockets[r]);
  }
}

Wire::Ticket SocketWire::send(const Message& m) {
  const auto ticket = next_ticket_++;
  peers_[std::size_t(m.peer)].outgoing.push_back(
      {.ticket = ticket, .header = {m.channel, m.size}, .data = m.data});
  return ticket;
}

Wire::Ticket SocketWire::receive(const Message& m) {
  auto& peer = peers_[std::size_t(m.peer)];
  const auto ticket = next_ticket_++;
  auto& came = peer.unexpected[m.channel];
  // A message still arriving in the buffer is matched when complete.
  if (came.empty() || !peer.expected[m.channel].empty()) {
    peer.expected[m.channel].push_back({ticket, m.data, m.size});
    return ticket;
  }
  if (came.front().size() != m.size)
    throw std::runtime_error("a message of another size than agreed came from rank " +
                             std::to_string(m.peer));
  std::memcpy(m.data, came.front().data(), m.size);
  came.pop_front();
  done_early_.push_back(ticket);
  return ticket;
}

Wire::Events SocketWire::poll(std::chrono::microseconds at_most) {
  Events events;
  events.done.swap(done_early_);
  std::vector<pollfd> files = {{.fd = waker_.get(), .events = POLLIN, .revents = 0}};
  std::vector<Peer*> who = {nullptr};
  for (auto& peer : peers_) {
    if (!peer.socket.is_open()) continue;
    const short requested = short(POLLIN | (peer.outgoing.empty() ? 0 : POLLOUT));
    files.push_back({.fd = peer.socket.get(), .events = requested, .revents = 0});
    who.push_back(&peer);
  }
  const auto wait = events.done.empty() ? at_most.count() : 0;
  const timespec time{.tv_sec = wait / 1'000'000, .tv_nsec = wait % 1'000'000 * 1000};
  if (::ppoll(files.data(), files.size(), &time, nullptr) < 0 && errno != EINTR)
    throw std::runtime_error("cannot wait for sockets: " + socket_error());
  if (files[0].revents != 0) {
    std::uint64_t count;
    [[maybe_unused]] const auto read = ::read(waker_.get(), &count, sizeof count);
  }
  for (std::size_t i = 1; i < files.size(); ++i) {
    if (files[i].revents & POLLOUT) write_some(*who[i], events);
    if (files[i].revents & (POLLIN | POLLHUP | POLLERR)) read_some(*who[i], events);
  }
  return events;
}

// Everything has arrived: it precedes the control message on the same connection.
void SocketWire::drop(int rank, std::uint64_t) {
  auto& peer = peers_[std::size_t(rank)];
  const auto is_dropped = [](const auto& of_channel) { return of_channel.first != kControl; };
  std::erase_if(peer.expected, is_dropped);
  std::erase_if(peer.unexpected, is_dropped);
}

void SocketWire::wake() noexcept {
  const std::uint64_t one = 1;
  [[maybe_unused]] const auto written = ::write(waker_.get(), &one, sizeof one);
}

// Closing a socket with unread bytes discards what it sent last. So this announces the end, then
// reads until the others do too.
void SocketWire::end(std::chrono::milliseconds patience) {
  for (auto& peer : peers_) {
    peer.outgoing.clear();
    if (peer.socket.is_open()) ::shutdown(peer.socket.get(), SHUT_WR);
  }
  const auto end = std::chrono::steady_clock::now() + patience;
  const auto is_open = [](const Peer& peer) { return peer.socket.is_open(); };
  std::vector<std::byte> rest(1 << 16);
  while (std::any_of(peers_.begin(), peers_.end(), is_open) &&
         std::chrono::steady_clock::now() < end) {
    for (auto& peer : peers_) {
      if (!is_open(peer)) continue;
      Events unheard;
      while (read_into(peer, rest.data(), rest.size(), unheard) > 0) {
      }
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

void SocketWire::lose(Peer& peer, const std::string& why, Events& events) {
  if (!peer.socket.is_open()) return;
  peer.socket = FileDescriptor();
  peer.outgoing.clear();
  events.lost.push_back({peer.rank, why});
}

void SocketWire::write_some(Peer& peer, Events& events) {
  for (int turn = 0; turn < kTurns && !peer.outgoing.empty(); ++turn) {
    auto& out = peer.outgoing.front();
    const auto* const header = reinterpret_cast<const std::byte*>(&out.header);
    const std::size_t of_header = std::min(out.sent, sizeof(Header));
    const std::size_t of_data = out.sent - of_header;
    iovec parts[2] = {{const_cast<std::byte*>(header) + of_header, sizeof(Header) - of_header},
                      {const_cast<std::byte*>(out.data) + of_data, out.header.size - of_data}};
    msghdr message{};
    message.msg_iov = parts;
    message.msg_iovlen = 2;
    const auto count = ::sendmsg(peer.socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count < 0) {
      if (errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) lose(peer, why(), events);
      return;
    }
    out.sent += std::size_t(count);
    if (out.sent < sizeof(Header) + out.header.size) return;
    events.done.push_back(out.ticket);
    peer.outgoing.pop_front();
  }
}

// Bytes read; 0: none at the moment, or none ever again.
std::ptrdiff_t SocketWire::read_into(Peer& peer, std::byte* data, std::size_t size,
                                     Events& events) {
  const auto count = ::recv(peer.socket.get(), data, size, MSG_DONTWAIT);
  if (count > 0) return count;
  if (count == 0) lose(peer, kEnded, events);
  if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR)
    lose(peer, why(), events);
  return 0;
}

bool SocketWire::read_header(Peer& peer, Events& events) {
  auto* const header = reinterpret_cast<std::byte*>(&peer.header);
  peer.header_read += std::size_t(
      read_into(peer, header + peer.header_read, sizeof(Header) - peer.header_read, events));
  if (peer.header_read < sizeof(Header)) return false;
  if (peer.header.size == 0 || peer.header.size > kLargestMessage) {
    lose(peer, "it sent something that is not a message", events);
    return false;
  }
  begin_message(peer);
  return true;
}

void SocketWire::begin_message(Peer& peer) {
  auto& expected = peer.expected[peer.header.channel];
  peer.data_read = 0;
  if (expected.empty()) {
    peer.ticket = 0;
    peer.buffer.resize(peer.header.size);
    peer.target = peer.buffer.data();
    return;
  }
  const auto next = expected.front();
  expected.pop_front();
  if (next.size != peer.header.size)
    throw std::runtime_error("a message of another size than agreed came from rank " +
                             std::to_string(peer.rank));
  peer.ticket = next.ticket;
  peer.target = next.data;
}

void SocketWire::end_message(Peer& peer, Events& events) {
  peer.header_read = 0;
  if (peer.ticket != 0) {
    events.done.push_back(peer.ticket);
    return;
  }
  auto& expected = peer.expected[peer.header.channel];
  if (expected.empty()) {  // still nobody expects it
    peer.unexpected[peer.header.channel].push_back(std::move(peer.buffer));
    peer.buffer = {};
    return;
  }
  const auto next = expected.front();
  expected.pop_front();
  if (next.size != peer.buffer.size())
    throw std::runtime_error("a message of another size than agreed came from rank " +
                             std::to_string(peer.rank));
  std::memcpy(next.data, peer.buffer.data(), next.size);
  events.done.push_back(next.ticket);
}

void SocketWire::read_some(Peer& peer, Events& events) {
  for (int turn = 0; turn < kTurns && peer.socket.is_open(); ++turn) {
    if (peer.header_read < sizeof(Header)) {
      if (!read_header(peer, events)) return;
      continue;
    }
    const auto count =
        read_into(peer, peer.target + peer.data_read, peer.header.size - peer.data_read, events);
    if (count == 0) return;
    peer.data_read += std::size_t(count);
    if (peer.data_read == peer.header.size) end_message(peer, events);
  }
}

}  // namespace braid
