// What is asked of CUDA's or HIP's runtime itself, for which LibTorch has no word. Builds without a
// GPU backend have no_gpu_runtime.cc.
#pragma once

#include <cstddef>
#include <string>

namespace braid::gpu_runtime {

// Locks host memory that is there already: devices copy from it by themselves ("pinned"). Exactly
// these bytes, in whole pages of the system. False where the system refuses.
bool lock(void* data, std::size_t bytes);
void unlock(void* data);

// "0000:41:00.0": where a device is plugged in, the same in every process of its host whichever
// devices each of them sees. Empty where that is not known.
std::string bus_id(int device);

// 90 of NVIDIA's sm_90; 0 of AMD's, and where it is not known.
int compute_capability(int device);

}  // namespace braid::gpu_runtime
