// Where a server listens and clients are: addresses of IP, and Unix sockets.
#pragma once

#include <sys/types.h>

#include <string>
#include <utility>  // Boost 1.74 uses std::exchange without it

#include <boost/asio.hpp>

namespace braid::serve {

namespace net = boost::asio;
using Socket = net::generic::stream_protocol::socket;  // of either kind
using Endpoint = net::generic::stream_protocol::endpoint;

constexpr const char* kUnix = "unix:";

// "127.0.0.1", also of a client that reaches an IPv6 socket by IPv4 (::ffff:127.0.0.1); "unix" for
// a Unix socket.
std::string address_text(const Endpoint& endpoint);
int port_of(const Endpoint& endpoint);

// Keeps other servers from looking at a Unix socket's path while one takes its place: until that
// one listens, the others would find nobody there and remove its file. A lock on PATH.lock, which
// the end removes.
class UnixSocketClaim {
 public:
  // Throws Error if another server holds it, or the lock's file cannot be made.
  explicit UnixSocketClaim(const std::string& address);
  UnixSocketClaim(const UnixSocketClaim&) = delete;
  UnixSocketClaim& operator=(const UnixSocketClaim&) = delete;
  ~UnixSocketClaim();

 private:
  bool take(const std::string& address);

  std::string path_;
  int fd_ = -1;
};

// The file of a Unix socket that is listened on, for the user and its group. Removed at the end.
class UnixSocketFile {
 public:
  explicit UnixSocketFile(const std::string& address);  // "unix:PATH"; it is bound
  UnixSocketFile(const UnixSocketFile&) = delete;
  UnixSocketFile& operator=(const UnixSocketFile&) = delete;
  ~UnixSocketFile();

  // Throws InputError for a path that is empty or too long.
  static Endpoint endpoint_of(const std::string& address);
  // Removes what a server has left that was killed. Throws InputError if the file is something
  // else, and Error if a server listens there. Call under a claim.
  static void make_room(const std::string& address);

 private:
  std::string path_;
  ino_t inode_ = 0;
};

}  // namespace braid::serve
