// Direct calls to CUDA's or HIP's runtime that LibTorch does not offer. Builds without a GPU
// backend use no_gpu_runtime.cc.
#pragma once

#include <cstddef>
#include <string>

namespace braid::gpu_runtime {

// Page-locks existing host memory so that devices can copy from it directly ("pinned"): exactly
// these bytes, in whole system pages. False if the system refuses.
bool lock(void* data, std::size_t bytes);
void unlock(void* data);

// "0000:41:00.0": the device's PCI address, the same in all processes of a host, whichever devices
// they see. Empty if unknown.
std::string bus_id(int device);

// Hexadecimal digits that name the device, or the part of it (MIG) that this process sees; all
// parts have one bus_id(). Empty if unknown, and for AMD's.
std::string uuid(int device);

// Whether what this stream is given is recorded in a graph.
bool is_recording(void* stream);

// 90 for NVIDIA's sm_90; 0 for AMD's or if unknown.
int compute_capability(int device);

// "sm_90"; "gfx1030", also of a device that only claims to be one; empty if unknown. Takes no
// memory of the device.
std::string architecture(int device);

}  // namespace braid::gpu_runtime
