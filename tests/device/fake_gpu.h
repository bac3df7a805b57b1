// Two GPUs for machines without one: to LibTorch they are CUDA's, their memory is the host's, and
// they have done what they are asked when it is asked. Like real ones they keep no statistics
// before they are made ready and take no tensors of two devices.
#pragma once

#include <c10/core/Allocator.h>

#include <cstdint>

namespace braid::fake_gpu {

c10::Allocator* memory();             // of the current one
std::int64_t num_streams_recorded();  // by Tensor::record_stream()

}  // namespace braid::fake_gpu
