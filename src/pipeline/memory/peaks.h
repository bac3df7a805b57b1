// The most memory that each rank of a run held in each of its phases.
#pragma once

#include <array>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "base/memory_meter.h"
#include "braid/braid.h"
#include "comm/group.h"

namespace braid {

using BytesByPhase = std::array<std::int64_t, 4>;  // in the order of Phase
constexpr std::array<Phase, 4> kPhases = {Phase::kLoad, Phase::kText, Phase::kDenoise,
                                          Phase::kDecode};
const char* phase_name(Phase phase);  // "load"

// Of one rank; 0 for phases that it did not have. Ranks that are threads share what is resident in
// their process, and those of them on one GPU what is allocated there: it is counted once and told
// of each of them.
struct RankPeaks {
  std::string device;                                // "cpu", "cuda:1"
  BytesByPhase resident = {};                        // of the host
  BytesByPhase allocated = {}, reserved = {};        // of a GPU, by LibTorch's allocator
  int resident_shared_by = 1, device_shared_by = 1;  // ranks
};

// Measures one process. The kernel keeps one peak a process and the allocator one a device, which
// this sets back whenever a phase begins: only one meter may be at work.
class PeakMeter {
 public:
  PeakMeter();

  // A device that a rank of this process is about to use; the CPU needs no watching.
  void watch(at::Device device);
  // What is held from here on belongs to `phase`. Called by every rank of the process; the first to
  // begin a phase ends the one before.
  void enter(Phase phase);
  void finish();

  // Of all ranks, in their order. Collective, after finish().
  std::vector<RankPeaks> gather(const Group& world, at::Device mine) const;

  std::int64_t start_bytes() const { return start_bytes_; }  // resident, before the first phase
  bool is_exact() const { return memory_.is_exact(); }       // else sampled at the ends of phases

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
