// All ranks of a run, wherever they are: threads of this process, or processes that a launcher
// started, of which this one is a rank.
#pragma once

#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "comm/group.h"
#include "comm/launch.h"

namespace braid {

struct WorldOptions {
  int size = 1;
  std::string product = {};  // where `size` comes from, for messages: "ring 2 x tp 2"
  // How long a rank waits for the others before it gives up.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  at::Device device = at::kCPU;  // of this process's rank, where ranks are processes
};

// What tensors of devices go between ranks by.
struct LinkUse {
  std::string over = {};     // "threads", "NCCL 2.30.7", "hosts"; empty where there is one rank
  std::string why_not = {};  // with "hosts": why not by a link of the devices
};

// Ranks that may be put to work several times.
class World {
 public:
  virtual ~World() = default;
  virtual int size() const = 0;

  // Runs `body(world)` on every rank that is here, each with its own view of the world; returns
  // when all ranks are done, also those elsewhere. When one throws, the others end with PeerFailed
  // at their next collective or poll; when all have ended, the cause is thrown here (as PeerFailed
  // where it came from another process, or where this process is not the first rank; a Cancelled
  // as such everywhere). Groups can be used again in the next run. Only a WorldLost ends the world:
  // later calls throw.
  //
  // A rank that is asked to stop throws Cancelled at its next collective or poll.
  virtual void run(const std::function<void(const Group& world)>& body,
                   std::stop_token stop = {}) = 0;

  virtual bool has_first_rank() const = 0;
  // How many ranks compute on the cores that this process may use.
  virtual int ranks_on_these_cores() const = 0;
  virtual LinkUse link() const = 0;
};

// Threads, or where `launch` is there the process of one rank. Throws InputError with the equation
// unless the launcher started `size` ranks.
std::unique_ptr<World> make_world(const WorldOptions& options,
                                  const std::optional<Launch>& launch = std::nullopt);

}  // namespace braid
