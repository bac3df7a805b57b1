#include "serve/http/endpoints.h"

#include <fcntl.h>
#include <netinet/in.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace braid::serve {
namespace {

std::string path_in(const std::string& address) { return address.substr(std::strlen(kUnix)); }

// Reads an endpoint as an address of IP; false for other kinds.
bool read_ip(const Endpoint& endpoint, net::ip::tcp::endpoint& ip) {
  const auto family = endpoint.protocol().family();
  if ((family != AF_INET && family != AF_INET6) || endpoint.size() > ip.capacity()) return false;
  std::memcpy(ip.data(), endpoint.data(), endpoint.size());
  return true;
}

}  // namespace

std::string address_text(const Endpoint& endpoint) {
  net::ip::tcp::endpoint ip;
  if (!read_ip(endpoint, ip)) return endpoint.protocol().family() == AF_UNIX ? "unix" : "";
  const auto address = ip.address();
  if (address.is_v6() && address.to_v6().is_v4_mapped())
    return net::ip::make_address_v4(net::ip::v4_mapped, address.to_v6()).to_string();
  return address.to_string();
}

int port_of(const Endpoint& endpoint) {
  net::ip::tcp::endpoint ip;
  return read_ip(endpoint, ip) ? ip.port() : 0;
}

Endpoint UnixSocketFile::endpoint_of(const std::string& address) {
  const auto path = path_in(address);
  constexpr auto kLongest = sizeof(sockaddr_un::sun_path) - 1;
  require(!path.empty() && path.size() <= kLongest, "the path of a Unix socket should have 1 to ",
          kLongest, " bytes, it has ", path.size());
  return net::local::stream_protocol::endpoint(path);
}

UnixSocketClaim::UnixSocketClaim(const std::string& address) : path_(path_in(address) + ".lock") {
  while (!take(address)) {
  }
}

// False if the holder before has just removed the file. File systems without locks grant
// everything.
bool UnixSocketClaim::take(const std::string& address) {
  fd_ = ::open(path_.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  const int failure = errno;
  check(fd_ >= 0, "cannot listen on ", address, ": cannot open ", path_, ": ",
        std::strerror(failure));
  const bool is_taken = ::flock(fd_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
  struct stat open {
  }, named{};
  const bool is_at_path = ::fstat(fd_, &open) == 0 && ::lstat(path_.c_str(), &named) == 0 &&
                          open.st_dev == named.st_dev && open.st_ino == named.st_ino;
  if (is_at_path && !is_taken) return true;
  ::close(fd_);
  check(!is_taken, "cannot listen on ", address, ": another server is about to listen there");
  return false;
}

UnixSocketClaim::~UnixSocketClaim() {
  (void)::unlink(path_.c_str());
  ::close(fd_);
}

void UnixSocketFile::make_room(const std::string& address) {
  const auto path = path_in(address);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;  // if it cannot be reached, bind() says why
  require(S_ISSOCK(status.st_mode), path,
          " should be a Unix socket or not be there: it is another ", "kind of file");
  net::io_context io;
  net::local::stream_protocol::socket probe(io);
  boost::system::error_code error;
  probe.open(net::local::stream_protocol());
  probe.non_blocking(true);  // where a server accepts nobody, connect() would wait for it
  (void)probe.connect(net::local::stream_protocol::endpoint(path), error);
  check(error == net::error::connection_refused, "cannot listen on ", address, ": ",
        error ? error.message() : "another server listens there");
  (void)::unlink(path.c_str());
}

UnixSocketFile::UnixSocketFile(const std::string& address) : path_(path_in(address)) {
  struct stat status {};
  (void)::chmod(path_.c_str(), S_IRUSR | S_IWUSR | S_IRGRP | S_IWGRP);
  if (::lstat(path_.c_str(), &status) == 0) inode_ = status.st_ino;
}

// Another server may have taken the place meanwhile.
UnixSocketFile::~UnixSocketFile() {
  struct stat status {};
  if (::lstat(path_.c_str(), &status) == 0 && status.st_ino == inode_)
    (void)::unlink(path_.c_str());
}

}  // namespace braid::serve
