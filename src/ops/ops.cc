// Each operation by the kernel that takes its tensors, else by its definition.
#include <ATen/ATen.h>

#include <algorithm>

#include "ops/cpu.h"
#include "ops/reference.h"

namespace braid::ops {
namespace {

template <class... Tensors>
bool cpu_takes(const Tensor& first, const Tensors&... others) {
  return cpu::is_taken(first) &&
         (... && (cpu::is_taken(others) && others.scalar_type() == first.scalar_type()));
}

}  // namespace

Tensor gelu(const Tensor& x) { return cpu_takes(x) ? cpu::gelu(x) : reference::gelu(x); }

Tensor modulated_norm(const Tensor& x_BLC, const Modulation& m) {
  return cpu_takes(x_BLC, m.scale, m.shift) ? cpu::modulated_norm(x_BLC, m)
                                            : reference::modulated_norm(x_BLC, m);
}

Tensor gated_residual(const Tensor& residual_BLC, const Tensor& gate_B1C, const Tensor& y_BLC) {
  return cpu_takes(residual_BLC, gate_B1C, y_BLC)
             ? cpu::gated_residual(residual_BLC, gate_B1C, y_BLC)
             : reference::gated_residual(residual_BLC, gate_B1C, y_BLC);
}

Tensor joined_gelu(const Tensor& x, const Tensor& y) {
  return cpu_takes(x, y) ? cpu::joined_gelu(x, y) : reference::joined_gelu(x, y);
}

Tensor normed_rotated(std::span<const NormedHeads> parts, double eps, const Rope& rope) {
  const auto is_taken = [&](const NormedHeads& part) {
    return cpu_takes(part.x_BLHD) && part.x_BLHD.size(3) % 2 == 0 &&
           part.x_BLHD.scalar_type() == parts.front().x_BLHD.scalar_type() &&
           part.weight_D.scalar_type() == part.x_BLHD.scalar_type();
  };
  return std::all_of(parts.begin(), parts.end(), is_taken)
             ? cpu::normed_rotated(parts, eps, rope)
             : reference::normed_rotated(parts, eps, rope);
}

}  // namespace braid::ops
