#include "comm/process/sockets.h"

#include <fcntl.h>
#include <ifaddrs.h>
#include <netdb.h>
#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <memory>

#include "base/error.h"

namespace braid {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kPatience = std::chrono::seconds(5);
// A connection may end between a poll of the listener and its accept, which then should not block.
constexpr int kListening = SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK;

std::string address_text(const sockaddr* address, socklen_t size) {
  char host[NI_MAXHOST];
  if (::getnameinfo(address, size, host, sizeof host, nullptr, 0, NI_NUMERICHOST) != 0) return "";
  return host;
}

socklen_t size_of(const sockaddr* address) {
  return address->sa_family == AF_INET6 ? sizeof(sockaddr_in6) : sizeof(sockaddr_in);
}

int port_of(const sockaddr_storage& address) {
  return ntohs(address.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6&>(address).sin6_port
                   : reinterpret_cast<const sockaddr_in&>(address).sin_port);
}

sockaddr_storage own_address(const FileDescriptor& socket) {
  sockaddr_storage address{};
  socklen_t size = sizeof address;
  const bool is_named =
      ::getsockname(socket.get(), reinterpret_cast<sockaddr*>(&address), &size) == 0;
  check(is_named, "cannot read a socket's address: ", socket_error());
  return address;
}

using Addresses = std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)>;

Addresses look_up(const std::string& host, int port, int type) {
  addrinfo requested{};
  requested.ai_socktype = type;
  addrinfo* found = nullptr;
  const int failure = ::getaddrinfo(host.c_str(), std::to_string(port).c_str(), &requested, &found);
  check(failure == 0, "cannot find the host ", host, ": ", ::gai_strerror(failure));
  return {found, &::freeaddrinfo};
}

int count_of(const Addresses& found) {
  int count = 0;
  for (const auto* a = found.get(); a; a = a->ai_next) ++count;
  return count;
}

// No limit is less than a millisecond: none at all would be endless.
void limit_sends(const FileDescriptor& socket, std::chrono::milliseconds most) {
  const auto count = std::max<std::int64_t>(most.count(), 1);
  const timeval limit{.tv_sec = count / 1000, .tv_usec = count % 1000 * 1000};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// A socket for IPv6 and IPv4, or for IPv4 alone if the host has no IPv6; with port 0 at a free one.
FileDescriptor bound_anywhere(int port) {
  FileDescriptor both(::socket(AF_INET6, kListening, 0));
  const int off = 0, on = 1;
  sockaddr_in6 any6{};
  any6.sin6_family = AF_INET6;
  any6.sin6_port = htons(std::uint16_t(port));
  if (port > 0) ::setsockopt(both.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (both.is_open() &&
      ::setsockopt(both.get(), IPPROTO_IPV6, IPV6_V6ONLY, &off, sizeof off) == 0 &&
      ::bind(both.get(), reinterpret_cast<const sockaddr*>(&any6), sizeof any6) == 0)
    return both;
  FileDescriptor four(::socket(AF_INET, kListening, 0));
  sockaddr_in any4{};
  any4.sin_family = AF_INET;
  any4.sin_port = htons(std::uint16_t(port));
  if (port > 0) ::setsockopt(four.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  const bool is_bound =
      four.is_open() &&
      ::bind(four.get(), reinterpret_cast<const sockaddr*>(&any4), sizeof any4) == 0;
  check(is_bound, "cannot bind a socket: ", socket_error());
  return four;
}

// The address this host uses to send to `host`.
std::string source_towards(const std::string& host) {
  constexpr int kAnyPort = 9;
  const auto found = look_up(host, kAnyPort, SOCK_DGRAM);
  for (const auto* a = found.get(); a; a = a->ai_next) {
    const FileDescriptor probe(::socket(a->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    if (!probe.is_open() || ::connect(probe.get(), a->ai_addr, a->ai_addrlen) != 0) continue;
    const auto address = own_address(probe);
    const auto* const any = reinterpret_cast<const sockaddr*>(&address);
    return address_text(any, size_of(any));
  }
  throw Error("this host has no way to " + host);
}

// Otherwise errno says why. A connect() that waits would be given up when the process is stopped
// and goes on (Ctrl-Z and fg, a debugger): signal(7), "by stop signals".
bool connects(const FileDescriptor& socket, const addrinfo& to,
              std::chrono::milliseconds patience) {
  if (::connect(socket.get(), to.ai_addr, to.ai_addrlen) == 0) return true;
  if (errno != EINPROGRESS) return false;
  const auto end = Clock::now() + patience;
  pollfd way{.fd = socket.get(), .events = POLLOUT, .revents = 0};
  int count = 0;
  do {
    count = ::poll(&way, 1, int(left_until(end).count()));
  } while (count < 0 && errno == EINTR);
  if (count == 0) errno = ETIMEDOUT;
  socklen_t size = sizeof errno;
  if (count > 0) ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &errno, &size);
  return errno == 0;
}

}  // namespace

std::chrono::milliseconds left_until(Clock::time_point end) {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(end - Clock::now());
  return std::max(left, std::chrono::milliseconds(0));
}

std::string socket_error() { return std::strerror(errno); }

Listener listen_anywhere(int at_port) {
  auto socket = bound_anywhere(at_port);
  const bool listens = ::listen(socket.get(), SOMAXCONN) == 0;
  check(listens, "cannot listen: ", socket_error());
  const int port = port_of(own_address(socket));
  return {.socket = std::move(socket), .port = port};
}

// Other failures than a lack of descriptors or memory are those of the one connection, or of the
// network that it came over (accept(2), "Error handling").
FileDescriptor accept_waiting(const Listener& listener) {
  FileDescriptor socket(::accept4(listener.socket.get(), nullptr, nullptr, SOCK_CLOEXEC));
  constexpr std::array kOwn = {EMFILE, ENFILE, ENOBUFS, ENOMEM, EBADF, EINVAL};
  const bool has_room =
      socket.is_open() || std::find(kOwn.begin(), kOwn.end(), errno) == kOwn.end();
  check(has_room, "cannot accept a connection: ", socket_error());
  return socket;
}

void check_host(const std::string& host) { (void)look_up(host, /*port=*/1, SOCK_STREAM); }

// Each address may take its part of the time that is left: one that does not answer leaves time for
// the others.
FileDescriptor connect_to(const std::string& host, int port, std::chrono::milliseconds patience) {
  const auto found = look_up(host, port, SOCK_STREAM);
  const auto end = Clock::now() + std::min(patience, kPatience);
  auto num_left = count_of(found);
  int why = 0;
  for (const auto* a = found.get(); a; a = a->ai_next, --num_left) {
    FileDescriptor socket(::socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (socket.is_open() && connects(socket, *a, left_until(end) / num_left)) {
      ::fcntl(socket.get(), F_SETFL, ::fcntl(socket.get(), F_GETFL) & ~O_NONBLOCK);
      limit_sends(socket, kPatience);
      return socket;
    }
    why = errno;
  }
  throw Error(text_of("cannot connect to ", host, " port ", port, ": ",
                      why == ETIMEDOUT ? "it does not answer" : std::strerror(why)));
}

void send_all(const FileDescriptor& socket, const void* data, std::size_t size) {
  const bool is_sent = ::send(socket.get(), data, size, MSG_NOSIGNAL) == ssize_t(size);
  check(is_sent, "cannot send to another rank: ", socket_error());
}

std::vector<std::string> addresses_towards(const std::string& host) {
  std::vector<std::string> addresses = {source_towards(host)};
  if (!is_loopback(addresses.front())) return addresses;
  // `host` is this host. Others know it by its interface addresses.
  ifaddrs* list = nullptr;
  const bool is_listed = ::getifaddrs(&list) == 0;
  check(is_listed, "cannot list the network interfaces: ", socket_error());
  const std::unique_ptr<ifaddrs, decltype(&::freeifaddrs)> held(list, &::freeifaddrs);
  for (const auto* a = list; a; a = a->ifa_next) {
    if (!a->ifa_addr || (a->ifa_addr->sa_family != AF_INET && a->ifa_addr->sa_family != AF_INET6))
      continue;
    const auto name = address_text(a->ifa_addr, size_of(a->ifa_addr));
    if (!name.empty() && !is_loopback(name)) addresses.push_back(name);
  }
  return addresses;
}

bool is_loopback(const std::string& address) {
  return address.starts_with("127.") || address == "::1";
}

}  // namespace braid
