// Dense layers by our own products, for CPUs on which LibTorch's are slow.
#pragma once

#include <optional>

#include "weights/matrix.h"

namespace braid::ops {
struct ProductKernels;
}

namespace braid::ops::cpu {

// Whether linear() takes these operands and is the faster way on this machine.
bool supports_product(const Tensor& x, const Matrix& weight_NC);

enum class Finish { kPlain, kGelu };

// x_..C weight_NC bias_N -> [.. N] in x's dtype: bfloat16, or also float32 for kInt8Dynamic.
// Products are summed in float32, or in int32 for codes times codes. The bias is added and gelu
// applied before the sum is rounded once; gelu is not available for codes times codes. Codes times
// scales, and a coding's numbers, are first rounded to x's dtype. `kernels` may be another
// instruction set's; null means this machine's best.
Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Finish finish = Finish::kPlain, const ProductKernels* kernels = nullptr);

}  // namespace braid::ops::cpu
