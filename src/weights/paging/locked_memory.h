// Page-locked host memory, from which a GPU copies directly. LibTorch's pin_memory() copies, rounds
// up to a power of two (41 GB for the 24 GB of FLUX.1-dev's blocks) and keeps freed memory.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

// The same memory, locked until its last tensor is gone. nullopt if the system refuses.
std::optional<at::Tensor> locked(const at::Tensor& bytes);

}  // namespace braid
