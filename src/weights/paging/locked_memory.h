// Host memory that a GPU copies from by itself. LibTorch's pin_memory() copies, takes the next
// power of two (for 24 GB of FLUX.1-dev's blocks 41) and keeps what is freed.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>

namespace braid {

// The same memory, locked until the last tensor over it is gone. nullopt where the system refuses.
std::optional<at::Tensor> locked(const at::Tensor& bytes);

}  // namespace braid
