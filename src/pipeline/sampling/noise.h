// The noise that pictures begin with.
#pragma once

#include <ATen/core/Generator.h>
#include <ATen/core/Tensor.h>

#include <span>

namespace braid {

using at::Tensor;

// The generator that torch.Generator("cpu").manual_seed(seed) is.
at::Generator generator_of(std::uint64_t seed);

// Standard normal [B ...], picture b from generators[b], drawn on the CPU and in `dtype`, as the
// reference draws it. Equal to torch.randn bit for bit. `shape` is of one picture.
Tensor draw_noise(std::span<const at::Generator> generators, at::IntArrayRef shape,
                  at::ScalarType dtype);

}  // namespace braid
