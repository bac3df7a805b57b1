#include "pipeline/memory/peaks.h"

#include <ATen/ATen.h>
#include <c10/core/CachingDeviceAllocator.h>

#include <algorithm>

#include "base/random_bits.h"

namespace braid {
namespace {

constexpr auto kNumPhases = std::int64_t(kPhases.size());

// Layout of a rank's figures on the wire: who shares them, then four columns of each kind.
enum Column : std::int64_t {
  kProcess,
  kDevice,
  kResident,
  kAllocated = kResident + kNumPhases,
  kReserved = kAllocated + kNumPhases,
  kNumColumns = kReserved + kNumPhases
};

std::int64_t number_of(at::Device device) { return device.is_cpu() ? -1 : device.index(); }

BytesByPhase bytes_at(const Tensor& row, std::int64_t column) {
  BytesByPhase bytes;
  for (std::int64_t i = 0; i < kNumPhases; ++i)
    bytes[std::size_t(i)] = row[column + i].item<std::int64_t>();
  return bytes;
}

void raise(BytesByPhase& peaks, Phase phase, std::int64_t bytes) {
  auto& peak = peaks[std::size_t(phase)];
  peak = std::max(peak, bytes);
}

}  // namespace

PeakMeter::PeakMeter() {
  id_ = std::int64_t(random_bits() >> 1);
  start_bytes_ = std::int64_t(memory_.take());
}

void PeakMeter::watch(at::Device device) {
  const std::scoped_lock lock(mutex_);
  if (device.is_cpu() || find(device)) return;
  c10::getDeviceAllocator(device.type())->resetPeakStats(device.index());
  devices_.push_back({.device = device});
}

void PeakMeter::enter(Phase phase) {
  const std::scoped_lock lock(mutex_);
  if (phase_ != phase) take(phase);
}

void PeakMeter::finish() {
  const std::scoped_lock lock(mutex_);
  if (phase_) take({});
}

// Ends a phase; what follows belongs to `next`.
void PeakMeter::take(std::optional<Phase> next) {
  const auto resident = std::int64_t(memory_.take());
  if (phase_) raise(resident_, *phase_, resident);
  for (auto& peaks : devices_) {
    auto* const allocator = c10::getDeviceAllocator(peaks.device.type());
    const auto stats = allocator->getDeviceStats(peaks.device.index());
    allocator->resetPeakStats(peaks.device.index());
    constexpr auto kAll = std::size_t(c10::CachingAllocator::StatType::AGGREGATE);
    if (!phase_) continue;
    raise(peaks.allocated, *phase_, stats.allocated_bytes[kAll].peak);
    raise(peaks.reserved, *phase_, stats.reserved_bytes[kAll].peak);
  }
  phase_ = next;
}

const PeakMeter::DevicePeaks* PeakMeter::find(at::Device device) const {
  const auto it = std::find_if(devices_.begin(), devices_.end(),
                               [&](const DevicePeaks& d) { return d.device == device; });
  return it == devices_.end() ? nullptr : &*it;
}

std::vector<RankPeaks> PeakMeter::gather(const Group& world, at::Device mine) const {
  std::vector<std::int64_t> row = {id_, number_of(mine)};
  {
    const std::scoped_lock lock(mutex_);
    const auto* const found = find(mine);
    const auto on_device = found ? *found : DevicePeaks{.device = mine};
    for (const auto& peaks : {resident_, on_device.allocated, on_device.reserved})
      row.insert(row.end(), peaks.begin(), peaks.end());
  }
  world.await();  // the first rank may still be telling somebody of its pictures
  const auto rows = world.all_gather(at::tensor(row, at::kLong).unsqueeze(0), 0);
  const auto same = [&](const Tensor& mask) { return int(mask.sum().item<std::int64_t>()); };
  std::vector<RankPeaks> ranks;
  for (std::int64_t r = 0; r < rows.size(0); ++r) {
    const auto in_process = rows.select(1, kProcess) == rows[r][kProcess];
    const auto on_device = in_process & (rows.select(1, kDevice) == rows[r][kDevice]);
    const auto index = rows[r][kDevice].item<std::int64_t>();
    ranks.push_back({.device = index < 0 ? "cpu" : "cuda:" + std::to_string(index),
                     .resident = bytes_at(rows[r], kResident),
                     .allocated = bytes_at(rows[r], kAllocated),
                     .reserved = bytes_at(rows[r], kReserved),
                     .resident_shared_by = same(in_process),
                     .device_shared_by = same(on_device)});
  }
  return ranks;
}

MeasuredPeaks PeakMeter::measured(const Group& world, at::Device mine) const {
  return {.start_bytes = start_bytes(), .are_exact = is_exact(), .ranks = gather(world, mine)};
}

}  // namespace braid
