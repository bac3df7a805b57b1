// Sums over devices, and what becomes of them. Shape letters as in ops.h.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <span>

namespace braid::ops {

using at::Tensor;

// What becomes of a sum over devices: sum + bias, or residual + gate * (sum + bias), clipped as by
// gated_residual(). In float32, rounded once.
struct SumEnd {
  std::optional<Tensor> bias_C = {};
  Tensor residual_BLC = {}, gate_B1C = {};  // both or neither
};
// Elements of [B L C] in their order in memory: as many as there are, from `begin` on.
struct ElementRun {
  std::int64_t tokens, width, begin;  // L, C
};
// Writes a run of such a result into `out`, flat. `parts` are what each device has of it, flat,
// added in their order; `out` may be one of them. All are dense and of one dtype, which the ends
// have too.
void add_parts(std::span<const Tensor> parts, const SumEnd& end, const ElementRun& run,
               const Tensor& out);

}  // namespace braid::ops
