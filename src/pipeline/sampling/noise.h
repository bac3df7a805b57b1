// The noise that pictures begin with.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <span>

namespace braid {

using at::Tensor;
using Generators = std::span<const at::Generator>;  // one per picture

// The equivalent of torch.Generator("cpu").manual_seed(seed).
at::Generator generator_of(std::uint64_t seed);

// Standard normal [B ...], picture b from generators[b], drawn on the CPU and in `dtype`, as in the
// reference. Equal to torch.randn bit for bit. `shape` is that of one picture.
Tensor draw_noise(Generators generators, at::IntArrayRef shape, at::ScalarType dtype);

}  // namespace braid
