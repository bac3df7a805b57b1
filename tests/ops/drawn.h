// Random numbers for what is computed.
#pragma once

#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>

namespace braid {

// Normal numbers, always the same for a seed.
inline at::Tensor draw_floats(at::IntArrayRef shape, std::uint64_t seed = 21) {
  return at::randn(shape, at::detail::createCPUGenerator(seed), at::kFloat);
}

}  // namespace braid
