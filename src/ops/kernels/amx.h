// What is made of instructions that came after AVX-512, where the processor and the system give
// them.
#pragma once

#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/products.h"

namespace braid::ops {

// `vectors`, which are AVX-512's, with products of codes by VPDPBUSD; and those with products of
// bfloat16 by VDPBF16PS. Null where there is no such instruction.
const ProductKernels* vnni_products(const ProductKernels& vectors);
const ProductKernels* bf16_products(const ProductKernels& vectors);
const AttentionKernels* bf16_attention(const ProductKernels& vectors);

// `vectors`, which are AVX-512's, with products of tiles; what has few tokens stays with vectors.
// Null where there are no tiles.
const ProductKernels* amx_products(const ProductKernels& vectors);
const AttentionKernels* amx_attention(const ProductKernels& vectors);

}  // namespace braid::ops
