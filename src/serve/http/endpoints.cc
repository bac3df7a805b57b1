#include "serve/http/endpoints.h"

#include <netinet/in.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

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

void UnixSocketFile::make_room(const std::string& address) {
  const auto path = path_in(address);
  struct stat status {};
  if (::lstat(path.c_str(), &status) != 0) return;  // if it cannot be reached, bind() says why
  require(S_ISSOCK(status.st_mode), path,
          " should be a Unix socket or not be there: it is another ", "kind of file");
  net::io_context io;
  net::local::stream_protocol::socket probe(io);
  boost::system::error_code error;
  probe.connect(net::local::stream_protocol::endpoint(path), error);
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
