// Memory that an operation needs while it runs, kept from call to call: asking the system for a
// hundred megabytes costs as much as filling them.
#pragma once

#include <ATen/core/Tensor.h>

namespace braid {

class Scratch {
 public:
  // Uninitialised; the next call takes the same memory. Not for several threads at once.
  at::Tensor take(at::IntArrayRef shape, at::ScalarType dtype, at::Device device);

 private:
  at::Tensor bytes_;
};

}  // namespace braid
