// What is made of tiles (Intel AMX), where the processor and the system give them.
#pragma once

#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/products.h"

namespace braid::ops {

// `vectors`, which are AVX-512's, with products of tiles; what has few tokens stays with vectors.
// Null where there are no tiles.
const ProductKernels* amx_products(const ProductKernels& vectors);
const AttentionKernels* amx_attention(const ProductKernels& vectors);

}  // namespace braid::ops
