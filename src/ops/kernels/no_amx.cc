// Stands for kernels that need instructions newer than AVX-512 where no processor has them.
#include "ops/kernels/amx.h"

namespace braid::ops {

const ProductKernels* vnni_products(const ProductKernels&) { return nullptr; }
const ProductKernels* bf16_products(const ProductKernels&) { return nullptr; }
const AttentionKernels* bf16_attention(const ProductKernels&) { return nullptr; }
const ProductKernels* amx_products(const ProductKernels&) { return nullptr; }
const AttentionKernels* amx_attention(const ProductKernels&) { return nullptr; }

}  // namespace braid::ops
