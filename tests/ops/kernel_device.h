// Where the kernels that gpu_kernels_test.cc tests run: on a GPU in ops_test, on the host in
// gpu_kernels_test.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

std::optional<at::Device> kernel_device();  // nullopt: no GPU is here

// On the host: while it is there, kernels run their last blocks only, of grids of which all of them
// would take hours.
class LastBlocksOnly {
 public:
  explicit LastBlocksOnly(std::int64_t count);
  ~LastBlocksOnly();
};

}  // namespace braid
