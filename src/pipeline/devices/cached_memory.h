// What LibTorch's allocator keeps of freed GPU memory: of use to later tensors of this process, and
// to nobody else.
#pragma once

#include <c10/core/Device.h>

#include <cstdint>
#include <vector>

namespace braid {

// Bytes of a GPU that find_device() found; 0 for others.
std::int64_t cached_bytes(at::Device device);

// Gives back those of all GPUs of this process, once `device` is done with them. Spoils a recording
// (RecordingTurn).
void give_back_cached_memory(at::Device device);

// When it ends, what these devices keep of freed memory is given back. It waits for recordings.
// Declare it before what holds tensors.
class GivesBackMemory {
 public:
  explicit GivesBackMemory(std::vector<at::Device> devices);
  ~GivesBackMemory();
  GivesBackMemory(const GivesBackMemory&) = delete;
  GivesBackMemory& operator=(const GivesBackMemory&) = delete;

 private:
  std::vector<at::Device> devices_;
};

}  // namespace braid
