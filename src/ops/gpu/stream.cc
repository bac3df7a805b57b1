#include "ops/gpu/stream.h"

#include <c10/core/impl/VirtualGuardImpl.h>

namespace braid::ops::gpu {

void* current_stream(at::Device device) {
  return c10::impl::VirtualGuardImpl(device.type()).getStream(device).native_handle();
}

}  // namespace braid::ops::gpu
