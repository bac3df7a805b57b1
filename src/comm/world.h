// All ranks of a run: threads of this process, or processes started by a launcher, of which this is
// one.
#pragma once

#include <exception>
#include <functional>
#include <memory>
#include <stop_token>
#include <string>

#include "braid/layout.h"
#include "comm/group.h"
#include "comm/launch.h"

namespace braid {

struct WorldOptions {
  int size = 1;
  std::string product = {};  // origin of `size`, for messages: "ring 2 x tp 2"
  // How long a rank waits for the others before giving up.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
  // How long ranks that are processes wait for each other to start.
  std::chrono::milliseconds meeting = std::chrono::minutes(1);
  // Hears of a long wait for ranks to start.
  std::function<void(const std::string& sentence)> warn = {};
  std::vector<at::Device> devices = {};  // by rank; none: CPUs
  // kNative: throws InputError if there are several ranks and no link between their devices.
  Collectives collectives = Collectives::kOrdered;
  // What has ended this process already, if it is one rank: ends the run that begins the world, on
  // all ranks, before they compare anything.
  std::exception_ptr failure = {};
};

// How device tensors travel between ranks.
struct LinkUse {
  std::string over = {};     // "threads", "NCCL 2.30.7", "hosts"; empty for one rank
  std::string why_not = {};  // with "hosts", or "threads" on GPUs: why there is no device link
};

// Ranks that can be given work repeatedly.
class World {
 public:
  World();
  virtual ~World() = default;
  virtual int size() const = 0;

  // Runs `body(world)` on every local rank, each with its own view of the world; returns when all
  // ranks are done, local or not. If one throws, the others end with PeerFailed at their next
  // collective or poll. Once all have ended, the cause is thrown here. It becomes PeerFailed if it
  // came from another process, or if this process is not the first rank; a Cancelled stays one.
  // Groups work again in the next run. Only WorldLost ends the world: later calls throw.
  //
  // A rank asked to stop throws Cancelled at its next collective or poll.
  virtual void run(const std::function<void(const Group& world)>& body,
                   std::stop_token stop = {}) = 0;

  // Ends the run that the other processes make, with what failed on this one before it: they would
  // wait for this rank in vain. Throws as run() does. Where there are no others, only throws
  // `failure`: nothing that ranks have recorded is dropped.
  [[noreturn]] void fail_run(const std::exception_ptr& failure);
  // Why the world is lost, for people; nothing while it works.
  virtual std::optional<std::string> loss() const = 0;

  // `action` drops what a rank of this process recorded for replay, after any run that fails: links
  // between devices end only then. Must not throw.
  virtual void on_failed_run(std::function<void(int rank)> action) = 0;

  virtual bool has_first_rank() const = 0;
  virtual bool has_all_ranks() const = 0;  // no other process takes part
  // How many ranks compute on the cores available to this process.
  virtual int ranks_on_these_cores() const = 0;
  virtual LinkUse link() const = 0;
};

// Returns make(), which each process calls for itself before a run: what it throws on one of them
// ends the run of all.
template <class Make>
auto made_before_run(World& world, const Make& make) {
  std::exception_ptr failure;
  try {
    return make();
  } catch (...) {
    failure = std::current_exception();
  }
  world.fail_run(failure);
}

// A world of threads, or with `launch` the process of one rank. Throws InputError with the equation
// unless the launcher started `size` ranks.
std::unique_ptr<World> make_world(const WorldOptions& options,
                                  const std::optional<Launch>& launch = std::nullopt);

}  // namespace braid
