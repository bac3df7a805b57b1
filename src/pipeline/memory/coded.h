// Where weights stay in the codes of their files.
#pragma once

#include "weights/load_options.h"

namespace braid {

// CPU products decode them on the fly; GPUs have no kernels for that.
inline Coded coded_on(at::Device device) {
  return device.is_cpu() ? Coded::kKept : Coded::kWidened;
}

}  // namespace braid
