#include "pipeline/devices/cached_memory.h"

#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>
#include <exception>

#include "pipeline/devices/devices.h"
#include "pipeline/graphs/recording_turn.h"

namespace braid {
namespace {

bool has_memory(at::Device device) { return !device.is_cpu() && !device.is_meta(); }

}  // namespace

std::int64_t cached_bytes(at::Device device) {
  constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);
  if (!has_memory(device)) return 0;
  const auto stats = c10::getDeviceAllocator(device.type())->getDeviceStats(device.index());
  return stats.reserved_bytes[kAll].current - stats.allocated_bytes[kAll].current;
}

void give_back_cached_memory(at::Device device) {
  if (!has_memory(device)) return;
  wait_for(device);
  c10::getDeviceAllocator(device.type())->emptyCache();
}

GivesBackMemory::GivesBackMemory(std::vector<at::Device> devices) : devices_(std::move(devices)) {
  std::erase_if(devices_, [](at::Device device) { return !has_memory(device); });
}

GivesBackMemory::~GivesBackMemory() {
  if (devices_.empty()) return;
  try {
    const RecordingTurn turn(this, [&] {
      for (const auto device : devices_) give_back_cached_memory(device);
    });
  } catch (const std::exception&) {
    // a device that failed has nothing to give back, and whoever used it was told
  }
}

}  // namespace braid
