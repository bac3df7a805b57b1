// Where weights stay as their files have them.
#pragma once

#include "weights/load_options.h"

namespace braid {

// A CPU's products decode them; GPUs have no kernels that do.
inline Coded coded_on(at::Device device) {
  return device.is_cpu() ? Coded::kKept : Coded::kWidened;
}

}  // namespace braid
