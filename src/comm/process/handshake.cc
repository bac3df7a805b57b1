#include "comm/process/handshake.h"

#include <poll.h>
#include <sys/socket.h>

#include <cerrno>
#include <vector>

#include "base/error.h"

namespace braid {

void send_handshake(const FileDescriptor& socket, const Handshake& handshake) {
  send_all(socket, &handshake, sizeof handshake);
}

void AwaitedHandshakes::add(FileDescriptor socket, int expected) {
  silent_.push_back({.socket = std::move(socket), .expected = expected});
  if (expected == kUnknown && silent_.size() > most_) silent_.pop_front();
}

// What has arrived of a handshake; nothing while it is incomplete.
std::optional<AwaitedHandshakes::Heard> AwaitedHandshakes::read(std::size_t at) {
  auto& from = silent_[at];
  auto* const bytes = reinterpret_cast<char*>(&from.handshake);
  const auto got =
      ::recv(from.socket.get(), bytes + from.count, sizeof(Handshake) - from.count, MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return {};
  if (got > 0) from.count += std::size_t(got);
  if (got > 0 && from.count < sizeof(Handshake)) return {};
  if (got <= 0) from.handshake.magic = 0;
  Heard heard{
      .socket = std::move(from.socket), .expected = from.expected, .handshake = from.handshake};
  silent_.erase(silent_.begin() + std::ptrdiff_t(at));
  return heard;
}

std::optional<AwaitedHandshakes::Heard> AwaitedHandshakes::next(Clock::time_point end,
                                                                const Listener* listener) {
  for (;;) {
    std::vector<pollfd> files;
    for (const auto& silent : silent_)
      files.push_back({.fd = silent.socket.get(), .events = POLLIN, .revents = 0});
    if (listener) files.push_back({.fd = listener->socket.get(), .events = POLLIN, .revents = 0});
    const auto left = left_until(end).count();
    const int count = ::poll(files.data(), files.size(), int(left));
    const bool is_polled = count >= 0 || errno == EINTR;
    check(is_polled, "cannot wait for other ranks: ", socket_error());
    if (count <= 0 && left == 0) return {};
    if (count <= 0) continue;
    for (std::size_t i = 0; i < silent_.size(); ++i)
      if (files[i].revents != 0)
        if (auto heard = read(i)) return heard;
    if (!listener || files.back().revents == 0) continue;
    if (auto socket = accept_waiting(*listener); socket.is_open()) add(std::move(socket));
  }
}

}  // namespace braid
