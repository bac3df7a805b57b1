// Where gpu_kernels_test.cc runs its kernels: on a GPU in ops_test, on the host in
// gpu_kernels_test.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

std::optional<at::Device> kernel_device();  // nullopt: no GPU

// On the host, while it lives, kernels run only the last blocks of grids too large to run whole,
// which would take hours.
class LastBlocksOnly {
 public:
  explicit LastBlocksOnly(std::int64_t count);
  ~LastBlocksOnly();
};

}  // namespace braid
