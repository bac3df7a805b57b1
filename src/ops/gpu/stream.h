// Where kernels are put.
#pragma once

#include <c10/core/Device.h>

namespace braid::ops::gpu {

// The native handle of the device's stream that is current on this thread.
void* current_stream(at::Device device);

}  // namespace braid::ops::gpu
