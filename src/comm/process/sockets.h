// TCP between hosts: listening, connecting, and the names a host can be reached by.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/file_descriptor.h"

namespace braid {

struct Listener {
  FileDescriptor socket;
  int port;
};

// Listens at every address of this host, at a free port unless one is given. Throws Error.
Listener listen_anywhere(int at_port = 0);

// The next connection that waits at the listener; closed if none does, or if it has failed. Throws
// Error if this process can have no more.
FileDescriptor accept_waiting(const Listener& listener);

// Throws Error naming host, port and reason. Once the host's addresses are known, waits for all of
// them together 5 s at most, or for `patience` if that is less.
FileDescriptor connect_to(const std::string& host, int port,
                          std::chrono::milliseconds patience = std::chrono::seconds(5));

// Throws Error naming the host if no address of it can be found. A look-up may take the resolver's
// own time.
void check_host(const std::string& host);

// The time until `end`, as poll() takes it: in whole milliseconds, rounded up; 0 if it has passed.
std::chrono::milliseconds left_until(std::chrono::steady_clock::time_point end);

// Why the last call failed, from errno.
std::string socket_error();

// Sends everything within 5 s, or throws Error.
void send_all(const FileDescriptor& socket, const void* data, std::size_t size);

// The addresses by which hosts that can reach `host` may reach this one, likeliest first. A
// loopback address is only for processes on this host.
std::vector<std::string> addresses_towards(const std::string& host);
bool is_loopback(const std::string& address);

}  // namespace braid
