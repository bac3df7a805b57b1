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

// Runs `body(world)` on `size` threads, each with its own view of the world. When one throws, the
// others end with PeerFailed at their next collective, and the first cause is thrown here.
void run_ranks(const ThreadOptions& options, const std::function<void(const Group& world)>& body);

}  // namespace braid
