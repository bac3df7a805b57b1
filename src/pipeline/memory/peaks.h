// The most memory that each rank held in each phase of a run.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_meter.h"
#include "base/phases.h"
#include "braid/braid.h"
#include "comm/group.h"

namespace braid {

using BytesByPhase = std::array<std::int64_t, 4>;  // in the order of Phase

// Peaks of one rank; 0 for phases it did not have. Ranks that are threads share their process's
// resident memory, those on one GPU its allocations: counted once, reported for each of them.
struct RankPeaks {
  std::string device;                                // "cpu", "cuda:1"
  BytesByPhase resident = {};                        // host memory
  BytesByPhase allocated = {}, reserved = {};        // GPU memory, by LibTorch's allocator
  int resident_shared_by = 1, device_shared_by = 1;  // ranks
};

// What a PeakMeter measured of a run.
struct MeasuredPeaks {
  std::int64_t start_bytes = 0;  // resident, before the first phase
  bool are_exact = true;         // else sampled at the ends of phases
  std::vector<RankPeaks> ranks = {};
};

// Measures one process. At each phase it resets the kernel's peak of the process and the
// allocator's peak of each device, so only one meter may run at a time.
class PeakMeter {
 public:
  PeakMeter();

  // Watches a device that a rank of this process is about to use; the CPU needs no watching.
  void watch(at::Device device);
  // Memory held from here on belongs to `phase`. Called by every rank of the process; the first to
  // begin a phase ends the previous one.
  void enter(Phase phase);
  void finish();

  // Peaks of all ranks, in rank order. Collective, after finish().
  std::vector<RankPeaks> gather(const Group& world, at::Device mine) const;
  // The same with what holds for the process.
  MeasuredPeaks measured(const Group& world, at::Device mine) const;

  std::int64_t start_bytes() const { return start_bytes_; }
  bool is_exact() const { return memory_.is_exact(); }

 private:
  struct DevicePeaks {
    at::Device device;
    BytesByPhase allocated = {}, reserved = {};
  };
  void take(std::optional<Phase> phase);
  const DevicePeaks* find(at::Device device) const;

  mutable std::mutex mutex_;
  std::int64_t id_;  // of this process, among those of a run
  std::optional<Phase> phase_;
  MemoryMeter memory_;
  std::int64_t start_bytes_ = 0;
  BytesByPhase resident_ = {};
  std::vector<DevicePeaks> devices_;
};

}  // namespace braid
