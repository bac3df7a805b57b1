// The communicators of one rank: one of all ranks, for messages, and one of each group of them that
// sums. They end together.
#pragma once

#include <map>

#include "comm/device/nccl_communicator.h"

namespace braid {

class NcclCommunicators {
 public:
  NcclCommunicators(const Nccl& nccl, at::Device device,
                    std::chrono::milliseconds patience = std::chrono::minutes(1))
      : nccl_(nccl), device_(device), patience_(patience), world_(nccl, device, patience) {}

  // Collective over `world`: ends all connections and connects all ranks anew. Groups are connected
  // when they are next asked for.
  void connect(const Group& world);
  NcclCommunicator& of_world() { return world_; }

  // That of a group; null if none was connected since connect().
  NcclCommunicator* find(std::span<const int> ranks);
  // Connects one. Collective over the members.
  NcclCommunicator& connect(const DeviceLink::Members& members);

  // Aborts every communicator.
  void abort() noexcept;

 private:
  Nccl nccl_;
  at::Device device_;
  std::chrono::milliseconds patience_;
  int world_size_ = 0;
  NcclCommunicator world_;
  std::mutex mutex_;
  std::map<std::vector<int>, std::unique_ptr<NcclCommunicator>> groups_;  // by their ranks
};

}  // namespace braid
