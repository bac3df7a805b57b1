// Where gpu_kernels_test.cc runs its kernels: on a GPU in ops_test, on the host in
// gpu_kernels_test.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

namespace braid {

std::optional<at::Device> kernel_device();  // nullopt: no GPU

// The host calls this before a kernel runs, with its parameters, word for word, of which some are
// addresses, and the memory that it overwrites, if that is not new.
using OnLaunch = void (*)(std::span<const void* const> words, const void* overwritten);
extern OnLaunch on_launch;

// While it lives, kernels on the host run only the last blocks of grids too large to run whole,
// which would take hours.
class LastBlocksOnly {
 public:
  explicit LastBlocksOnly(std::int64_t count);
  ~LastBlocksOnly();
};

}  // namespace braid
