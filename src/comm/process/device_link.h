// Messages between the memories of GPUs in different processes, which need not pass through the
// hosts. The courier beside it agrees on what is sent and notices who is gone.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
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

// "NCCL 2.30.7"; empty in builds that have none: messages then pass through the hosts.
std::string device_link_name();

// Collective, for distinct devices of a build that has a link.
std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device);

struct LinkedDevices {
  std::shared_ptr<DeviceLink> link = {};  // nullptr: messages pass through the hosts
  std::string why_not = {};               // said where that is so
};
// Collective: tells the devices apart and links them where that can be. Nothing for one rank.
LinkedDevices link_devices(const Group& world, at::Device device);

// Which device this is, the same words in every process that has it, whatever number it has there;
// empty for a CPU.
std::string identity_of(at::Device device);

// Why tensors of these devices, by rank, pass through the hosts: one is a CPU, or two ranks share
// one, which NCCL refuses. Empty where they need not.
std::string why_through_hosts(const std::vector<std::string>& identities);

}  // namespace braid
