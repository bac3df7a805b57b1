// Messages between the memories of GPUs in different processes, which need not pass through the
// hosts. The courier beside it agrees on what is sent and notices who is gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <vector>

namespace braid {

class Group;

class DeviceLink {
 public:
  struct Message {
    int peer;      // a rank of the world
    at::Tensor x;  // contiguous, on this rank's device
  };

  virtual ~DeviceLink() = default;

  // Starts all messages at once, beside the current stream and after what it has been given.
  // Calling the result lets the current stream wait for them.
  [[nodiscard]] virtual std::function<void()> start(const std::vector<Message>& sends,
                                                    const std::vector<Message>& receives) = 0;
  // Ends what waits for a rank that has left the run. May be called from any thread; nothing works
  // until all ranks have renewed the link.
  virtual void abort() noexcept = 0;
  // Collective, over `world`, which needs no link. What was recorded of the link before is void.
  virtual void renew(const Group& world) = 0;
};

// Collective. Over NCCL or RCCL in a build that has it; nullptr in others, where two ranks share a
// device (NCCL refuses that), and where `device` is a CPU: messages then pass through the hosts.
std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device);

}  // namespace braid
