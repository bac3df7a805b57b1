// Our own attention for CPUs.
#pragma once

#include "ops/ops.h"

namespace braid::ops {
struct AttentionKernels;
}

namespace braid::ops::cpu {

// Which keys a query sees: all, or query i keys 0 .. i.
enum class SeenKeys { kAll, kCausal };

// Whether attend() takes these tensors and this machine has kernels for them: bfloat16 in host
// memory; dense heads whose width is 32 or 64 to 512; at least one query and one key; query heads
// divided evenly among key heads.
bool attends(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// Computes what attention_with_lse() does. Scores, softmax and sums are in float32; pair and tile
// kernels round weights to bfloat16 before multiplying the values. The result is rounded once and
// lies in memory as [B L H D]. The LSE is that of unrounded weights. Tests pass `kernels`; null
// means this machine's. kCausal takes as many queries as keys.
PartialAttention attend(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                        const AttentionKernels* kernels = nullptr, SeenKeys seen = SeenKeys::kAll);

}  // namespace braid::ops::cpu
