// Ranks as processes have them, each with a GPU of its own, as threads of this process: what goes
// between them takes the link of the devices.
#pragma once

#include "comm/worlds.h"
#include "on_gpu.h"

namespace braid {

// body(world, the rank's GPU)
inline void run_on_gpus(int size, const std::function<void(const World&, const Group&, int)>& body,
                        Collectives collectives = Collectives::kOrdered) {
  auto sockets = connected(size);
  std::vector<std::exception_ptr> failures(sockets.size());
  {
    std::vector<std::jthread> ranks;
    for (int r = 0; r < size; ++r)
      ranks.emplace_back([&, r] {
        try {
          const auto index = std::size_t(r);
          const at::Device mine(at::kCUDA, at::DeviceIndex(r % num_gpus()));
          ProcessWorld world(
              std::make_unique<SocketWire>(r, std::move(sockets[index])), std::chrono::seconds(20),
              {.make_link = [&](const Group& all) { return link_devices(all, mine); },
               .collectives = collectives});
          world.run([&](const Group& group) { body(world, group, r % num_gpus()); });
        } catch (...) {
          failures[std::size_t(r)] = std::current_exception();
        }
      });
  }
  for (const auto& failure : failures)
    if (failure) std::rethrow_exception(failure);
}

}  // namespace braid
