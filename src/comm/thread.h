// Ranks that are threads of this process: the embedded default, on CPUs and GPUs alike.
#pragma once

#include <functional>
#include <vector>

#include "comm/fate.h"
#include "comm/group.h"

namespace braid {

struct ThreadOptions {
  int size = 1;
  // How long a rank waits for the others before it gives up.
  std::chrono::milliseconds deadline = std::chrono::seconds(10);
};

// Ranks that may be put to work several times. Rank 0 is the calling thread.
class ThreadWorld {
 public:
  explicit ThreadWorld(const ThreadOptions& options);

  // Runs `body(world)` once a rank, each with its own view of the world. When one throws, the
  // others end with PeerFailed at their next collective, the first cause is thrown here, and the
  // world is lost: later calls throw. A Cancelled that every rank throws loses nothing.
  void run(const std::function<void(const Group& world)>& body);

  int size() const { return int(ranks_.size()); }

 private:
  void run_rank(int rank, const std::function<void(const Group& world)>& body);

  std::shared_ptr<Fate> fate_;
  std::vector<Group> ranks_;
  std::vector<std::exception_ptr> cancelled_;
};

// One run of a world of its own.
void run_ranks(const ThreadOptions& options, const std::function<void(const Group& world)>& body);

}  // namespace braid
