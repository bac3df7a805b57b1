// Scratch memory kept from call to call: requesting a hundred megabytes from the system costs as
// much as filling them.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

class Scratch {
 public:
  // Uninitialised; the next call returns the same memory. Not thread-safe.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType dtype, at::Device device);

 private:
  at::Tensor bytes_;
};

}  // namespace braid
