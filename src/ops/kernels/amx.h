// Kernels for instructions newer than AVX-512, if processor and system have them.
#pragma once

#include "ops/kernels/attention_kernels.h"
#include "ops/kernels/products.h"

namespace braid::ops {

// `vectors` (AVX-512) with products of codes by VPDPBUSD, or with bfloat16 products by VDPBF16PS.
// Null without the instruction.
const ProductKernels* vnni_products(const ProductKernels& vectors);
const ProductKernels* bf16_products(const ProductKernels& vectors);
const AttentionKernels* bf16_attention(const ProductKernels& vectors);

// `vectors` (AVX-512) with tile products; few tokens still use vectors. Null without tiles.
const ProductKernels* amx_products(const ProductKernels& vectors);
const AttentionKernels* amx_attention(const ProductKernels& vectors);

}  // namespace braid::ops
