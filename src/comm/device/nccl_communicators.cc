#include "comm/device/nccl_communicators.h"

#include "comm/group.h"

namespace braid {
namespace {

std::vector<int> key_of(std::span<const int> ranks) { return {ranks.begin(), ranks.end()}; }

}  // namespace

void NcclCommunicators::connect(const Group& world) {
  abort();
  // No lock is held, so that others can abort while this thread waits for ends.
  for (const auto& [ranks, group] : groups_) group->end(world);
  {
    const std::scoped_lock lock(mutex_);
    groups_.clear();
  }
  world_size_ = world.size();
  world_.connect(world);
}

// Only the thread that sums changes the map, so that it looks without the lock.
NcclCommunicator* NcclCommunicators::find(std::span<const int> ranks) {
  if (int(ranks.size()) == world_size_) return &world_;
  const auto found = groups_.find(key_of(ranks));
  return found == groups_.end() ? nullptr : found->second.get();
}

NcclCommunicator& NcclCommunicators::connect(const DeviceLink::Members& members) {
  auto made = std::make_unique<NcclCommunicator>(nccl_, device_, patience_);
  auto& group = *made;
  {
    const std::scoped_lock lock(mutex_);  // an abort() from now on ends it
    groups_.emplace(key_of(members.ranks), std::move(made));
  }
  group.connect(members.hosts);
  return group;
}

void NcclCommunicators::abort() noexcept {
  world_.abort();
  const std::scoped_lock lock(mutex_);
  for (const auto& [ranks, group] : groups_) group->abort();
}

}  // namespace braid
