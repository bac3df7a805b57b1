// The stream kernels are queued on.
#pragma once

#include <c10/core/Device.h>

namespace braid::ops::gpu {

// The native handle of this thread's current stream on the device.
void* current_stream(at::Device device);

}  // namespace braid::ops::gpu
