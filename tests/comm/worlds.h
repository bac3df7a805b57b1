// Ranks over each transport, so that the same test bodies run on all.
#pragma once

#include <sys/socket.h>

#include <thread>

#include "comm/process/process_world.h"
#include "comm/process/socket_wire.h"
#include "comm/thread.h"

namespace braid {

// Threads sharing memory; the processes' socket transport, between threads of this process; or the
// processes started by a launcher, of which this is one.
enum class Over { kThreads, kSockets, kLauncher };

inline const char* name_of(Over over) {
  return over == Over::kThreads ? "threads" : over == Over::kSockets ? "sockets" : "launcher";
}

// The transports this process can test; under a launcher, only that one.
inline std::vector<Over> transports() {
  if (read_launch()) return {Over::kLauncher};
  return {Over::kThreads, Over::kSockets};
}

// sockets[a][b] is rank a's end of its connection to rank b.
inline std::vector<std::vector<FileDescriptor>> connected(int size) {
  std::vector<std::vector<FileDescriptor>> sockets(static_cast<std::size_t>(size));
  for (auto& of_rank : sockets) of_rank.resize(sockets.size());
  for (std::size_t a = 0; a < sockets.size(); ++a)
    for (std::size_t b = 0; b < a; ++b) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM, 0, pair) != 0) throw Error("no socketpair");
      sockets[a][b] = FileDescriptor(pair[0]);
      sockets[b][a] = FileDescriptor(pair[1]);
    }
  return sockets;
}

// Runs each rank in its own thread, with its ends of the connections, until all have returned.
inline void on_connected_ranks(
    int size, const std::function<void(int rank, std::vector<FileDescriptor> sockets)>& run) {
  auto sockets = connected(size);
  std::vector<std::jthread> ranks;
  for (int r = 0; r < size; ++r)
    ranks.emplace_back([&, r] { run(r, std::move(sockets[std::size_t(r)])); });
}

// Runs each rank's world in its own thread. Throws the error of the lowest rank that failed itself,
// or else a PeerFailed.
inline void with_worlds_over_sockets(const WorldOptions& options,
                                     const std::function<void(World&)>& use) {
  std::vector<std::exception_ptr> failures(std::size_t(options.size));
  on_connected_ranks(options.size, [&](int rank, auto sockets) {
    try {
      ProcessWorld world(std::make_unique<SocketWire>(rank, std::move(sockets)), options.deadline);
      use(world);
    } catch (...) {
      failures[std::size_t(rank)] = std::current_exception();
    }
  });
  std::exception_ptr of_peer;
  for (const auto& failure : failures) {
    if (!failure) continue;
    try {
      std::rethrow_exception(failure);
    } catch (const PeerFailed&) {
      of_peer = failure;
    }
  }
  if (of_peer) std::rethrow_exception(of_peer);
}

// Every test under a launcher gets the launcher's number of ranks; callers skip tests that need
// another. The world is created once.
inline void with_world_of_launcher(const WorldOptions& options,
                                   const std::function<void(World&)>& use) {
  static const auto world = make_world({.size = read_launch()->size}, read_launch());
  check(options.size == world->size(), "a test for ", options.size, " ranks under a launcher of ",
        world->size());
  use(*world);
}

// Calls `use` once for all ranks that are threads, or once in every process.
inline void with_worlds_over(Over over, const WorldOptions& options,
                             const std::function<void(World&)>& use) {
  if (over == Over::kSockets) return with_worlds_over_sockets(options, use);
  if (over == Over::kLauncher) return with_world_of_launcher(options, use);
  ThreadWorld world(options);
  use(world);
}

inline void run_over(Over over, const WorldOptions& options,
                     const std::function<void(const Group&)>& body) {
  with_worlds_over(over, options, [&](World& world) { world.run(body); });
}

// What a rank does that computes while the others wait: it throws as soon as the run has failed.
inline void compute_until_failure(const Group& group) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (std::chrono::steady_clock::now() < end) {
    group.poll();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error("nothing has failed");
}

// The message of what `run` throws; empty if it throws nothing.
inline std::string failure_of(const std::function<void()>& run) {
  try {
    run();
  } catch (...) {
    return message_of(std::current_exception());
  }
  return "";
}

}  // namespace braid
