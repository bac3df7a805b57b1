// Dense layers by products of our own, for CPUs on which LibTorch's are slow.
#pragma once

#include <optional>

#include "weights/matrix.h"

namespace braid::ops {
struct ProductKernels;
}

namespace braid::ops::cpu {

// Whether linear() takes these, and is the faster way on this machine.
bool multiplies(const Tensor& x, const Matrix& weight_NC);

enum class Finish { kPlain, kGelu };

// x_..C weight_NC bias_N -> [.. N] in x's dtype: bfloat16, or float32 too times kInt8Dynamic.
// Products are summed in float32 or, of codes with codes, in int32; the bias is added and gelu
// applied before the sum is rounded, once; gelu not of codes times codes. Codes times scales are
// rounded to x's dtype first, and so are numbers of a coding.
// `kernels` are those of another instruction set, or none for the best of this machine.
Tensor linear(const Tensor& x, const Matrix& weight_NC, const std::optional<Tensor>& bias_N,
              Finish finish = Finish::kPlain, const ProductKernels* kernels = nullptr);

}  // namespace braid::ops::cpu
