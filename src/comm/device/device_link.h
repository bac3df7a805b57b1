// Messages between GPUs of different ranks. The hosts agree on what is sent and notice lost ranks.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "braid/layout.h"

namespace braid {

class Group;

class DeviceLink {
 public:
  struct Message {
    int peer;      // a rank of the world
    at::Tensor x;  // contiguous, on this rank's device
  };

  struct Sum {
    at::Tensor x, result;  // contiguous, of one shape and dtype, on this rank's device
  };
  // Ranks that sum together, this one among them.
  struct Members {
    const Group& hosts;          // in which they agree; it needs no link
    std::span<const int> ranks;  // of the world, by their number in `hosts`
  };

  virtual ~DeviceLink() = default;

  // Starts all messages at once on a side stream, after the work queued so far on the current
  // stream. Calling the result makes the current stream wait for them.
  [[nodiscard]] virtual std::function<void()> start(const std::vector<Message>& sends,
                                                    const std::vector<Message>& receives) = 0;
  // The same for sums over `members`, each of `x` into its `result`, in an order and with roundings
  // that are the link's own: the same bits on all members. Collective over them; the first time
  // since the link was renewed they are connected, which no device graph may be recording.
  [[nodiscard]] virtual std::function<void()> all_reduce(const Members& members,
                                                         const std::vector<Sum>& sums) = 0;
  // Whether all_reduce() takes tensors of this dtype.
  virtual bool can_sum(at::ScalarType dtype) const = 0;
  // Ends waits for a rank that has left the run. May be called from any thread; the link is
  // unusable until all ranks have renewed it.
  virtual void abort() noexcept = 0;
  // Collective over `world`, which needs no link. Exchanges captured before are void.
  virtual void renew(const Group& world) = 0;
};

// 23007 for NCCL 2.30.7; 0 where LibTorch has loaded none, and messages pass through the hosts.
int device_link_version();
std::string device_link_name();  // "NCCL 2.30.7"; empty without one

// Collective, for distinct devices where there is a link.
std::shared_ptr<DeviceLink> make_device_link(const Group& world, at::Device device);

struct LinkedDevices {
  std::shared_ptr<DeviceLink> link = {};  // nullptr: messages pass through the hosts
  std::string why_not = {};               // set if there is no link
};
// Throws InputError with the reason if sums should be the link's own and `size` ranks have none.
void check_collectives(Collectives collectives, int size, const LinkedDevices& linked);

// Collective: identifies the devices and links them if possible. Does nothing for one rank.
LinkedDevices link_devices(const Group& world, at::Device device);

// Identifies a device, the same in every process that has it, whatever its number there.
struct DeviceIdentity {
  std::string gpu = {};   // computer and place on its bus; empty for a CPU
  std::string part = {};  // which of a GPU's parts (MIG), where it has some
};
DeviceIdentity identity_of(at::Device device);

// Why tensors of these devices, by rank, pass through the hosts: one is a CPU, or two ranks share a
// GPU, which NCCL refuses; parts of one it takes from 2.30 on. Empty if they need not.
std::string why_through_hosts(const std::vector<DeviceIdentity>& identities, int link_version);

}  // namespace braid
