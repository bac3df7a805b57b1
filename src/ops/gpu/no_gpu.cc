// Stands for the kernels in builds without a GPU backend: it supports nothing, so nothing else is
// called.
#include "base/error.h"
#include "ops/gpu/architectures.h"
#include "ops/gpu/gpu.h"

namespace braid::ops::gpu {
namespace {

[[noreturn]] void refuse() { throw Error("this build has no kernels for GPUs"); }

}  // namespace

std::string compiled_architectures() { return ""; }

bool supports(const Tensor&) { return false; }
bool supports(const NormedHeads&) { return false; }
bool keeps_rows(std::int64_t) { return false; }
bool keeps_rows(const Tensor&) { return false; }
bool multiplies_with_gelu(const Tensor&, const Matrix&, const std::optional<Tensor>&) {
  return false;
}
bool multiplies_float8(const Tensor&, const Matrix&) { return false; }
bool rotates_rows(const Tensor&, std::int64_t) { return false; }
bool supports_int8_products(const Tensor&) { return true; }
bool supports_decoding(const Tensor&, const Matrix&) { return false; }

Tensor gelu(const Tensor&) { refuse(); }
Tensor modulated_norm(const Tensor&, const Modulation&) { refuse(); }
Tensor gated_residual(const Tensor&, const Tensor&, const Tensor&) { refuse(); }
SumAndInput gated_residual_norm(const Tensor&, const Tensor&, const Tensor&, const Modulation&) {
  refuse();
}
bool adds(std::size_t) { return false; }
void add_parts(std::span<const Tensor>, const SumEnd&, const ElementRun&, const Tensor&) {
  refuse();
}
Tensor joined_gelu(const Tensor&, const Tensor&) { refuse(); }
Tensor normed_rotated(std::span<const NormedHeads>, double, const Rope&) { refuse(); }
RotatedHeads normed_rotated(std::span<const NormedHeads>, std::span<const NormedHeads>, double,
                            const Rope&) {
  refuse();
}
Tensor euler_step(const Tensor&, const Tensor&, double) { refuse(); }
Matrix quantize_rows(const Tensor&, Quantize, std::int64_t) { refuse(); }
void widen(const Matrix&, const Tensor&) { refuse(); }
void scale(const ScaledSums&, const Tensor&) { refuse(); }
Tensor linear_gelu(const Tensor&, const Matrix&, const Tensor&) { refuse(); }
LayerInput gelu_codes(const Tensor&) { refuse(); }
LayerInput modulated_norm_codes(const Tensor&, const Modulation&) { refuse(); }
SumAndInput gated_residual_norm_codes(const Tensor&, const Tensor&, const Tensor&,
                                      const Modulation&) {
  refuse();
}
LayerInput joined_gelu_codes(const Tensor&, const Tensor&) { refuse(); }
Tensor linear_float8(const LayerInput&, const Matrix&, const std::optional<Tensor>&,
                     const Tensor&) {
  refuse();
}
void decode(const Matrix&, const Tensor&) { refuse(); }
Tensor linear_of_stored(const Tensor&, const Matrix&, const std::optional<Tensor>&, Scratch&) {
  refuse();
}

}  // namespace braid::ops::gpu
