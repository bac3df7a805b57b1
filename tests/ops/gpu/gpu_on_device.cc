#include <c10/core/impl/DeviceGuardImplInterface.h>

#include "kernel_device.h"

namespace braid {

std::optional<at::Device> kernel_device() {
  const bool is_built = c10::impl::hasDeviceGuardImpl(at::kCUDA);
  if (!is_built || c10::impl::getDeviceGuardImpl(at::kCUDA)->deviceCount() == 0) return {};
  return at::Device(at::kCUDA, 0);
}

}  // namespace braid
