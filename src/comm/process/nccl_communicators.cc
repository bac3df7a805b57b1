#include "comm/process/nccl_communicators.h"

#include "comm/group.h"

namespace braid {
namespace {

std::vector<int> key_of(std::span<const int> ranks) { return {ranks.begin(), ranks.end()}; }

}  // namespace

void NcclCommunicators::connect(const Group& world) {
  abort();
  // Only this thread changes the map: others, which abort, wait for no end.
  for (const auto& [ranks, group] : groups_) group->end(world);
  {
    const std::scoped_lock lock(mutex_);
    groups_.clear();
  }
  world_size_ = world.size();
  world_.connect(world);
}

bool NcclCommunicators::is_connected(std::span<const int> ranks) const {
  const std::scoped_lock lock(mutex_);
  return are_all(ranks) || groups_.contains(key_of(ranks));
}

NcclCommunicator& NcclCommunicators::of(const DeviceLink::Members& members) {
  if (are_all(members.ranks)) return world_;
  std::unique_lock lock(mutex_);
  auto& group = groups_[key_of(members.ranks)];
  if (group) return *group;
  group = std::make_unique<NcclCommunicator>(nccl_, device_, patience_);
  auto& made = *group;  // an abort() from now on ends it
  lock.unlock();
  made.connect(members.hosts);
  return made;
}

void NcclCommunicators::abort() noexcept {
  world_.abort();
  const std::scoped_lock lock(mutex_);
  for (const auto& [ranks, group] : groups_) group->abort();
}

}  // namespace braid
