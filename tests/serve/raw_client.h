// A client that sends exact bytes, piece by piece if need be, and reads the answer.
#pragma once

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <array>
#include <string>

namespace braid::serve {

class RawClient {
 public:
  // `own`: the address it comes from.
  explicit RawClient(int port, const char* server = "127.0.0.1", const char* own = "127.0.0.1")
      : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    EXPECT_EQ(::inet_pton(AF_INET, own, &address.sin_addr), 1);
    EXPECT_EQ(::bind(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
    address.sin_port = htons(std::uint16_t(port));
    EXPECT_EQ(::inet_pton(AF_INET, server, &address.sin_addr), 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  // Connects to a Unix socket.
  explicit RawClient(const std::string& path)
      : socket_(::socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_un address{};
    address.sun_family = AF_UNIX;
    path.copy(address.sun_path, sizeof address.sun_path - 1);
    EXPECT_EQ(::connect(socket_, reinterpret_cast<const sockaddr*>(&address), sizeof address), 0);
  }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;
  ~RawClient() { leave(); }

  void leave() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }
  // Says that nothing more will come, and goes on reading.
  void close_own_direction() const { ::shutdown(socket_, SHUT_WR); }
  void send(const std::string& bytes) const {
    for (std::size_t sent = 0; sent < bytes.size();) {
      const auto n = ::send(socket_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL);
      if (n <= 0) return;
      sent += std::size_t(n);
    }
  }
  // Reads until `text` has arrived; false at the end or after a minute of silence: sanitizers
  // make the server slow.
  bool read_until(const std::string& text) {
    while (received_.find(text) == std::string::npos)
      if (!read_some()) return false;
    return true;
  }
  std::string asked(const std::string& request) {
    send(request);
    return read_all();
  }
  // Whether something has arrived that was not read yet.
  bool has_more() const {
    pollfd fd{.fd = socket_, .events = POLLIN, .revents = 0};
    return ::poll(&fd, 1, 0) > 0;
  }
  // Reads until the server closes the connection.
  std::string read_all() {
    while (read_some()) {
    }
    return received_;
  }
  const std::string& received() const { return received_; }
  void forget() { received_.clear(); }

 private:
  bool read_some() {
    pollfd fd{.fd = socket_, .events = POLLIN, .revents = 0};
    if (::poll(&fd, 1, 60'000) <= 0) return false;
    std::array<char, 65536> buffer{};
    const auto n = ::recv(socket_, buffer.data(), buffer.size(), 0);
    if (n <= 0) return false;
    received_.append(buffer.data(), std::size_t(n));
    return true;
  }

  int socket_;
  std::string received_;
};

}  // namespace braid::serve
