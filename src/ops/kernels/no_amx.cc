// Processors that never have tiles.
#include "ops/kernels/amx.h"

namespace braid::ops {

const ProductKernels* amx_products(const ProductKernels&) { return nullptr; }
const AttentionKernels* amx_attention(const ProductKernels&) { return nullptr; }

}  // namespace braid::ops
