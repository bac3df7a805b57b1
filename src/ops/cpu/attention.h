// Attention of our own, for CPUs.
#pragma once

#include "ops/ops.h"

namespace braid::ops {
struct AttentionKernels;
}

namespace braid::ops::cpu {

// Whether attend() takes these, and this machine has kernels of ours: bfloat16 in host memory with
// heads that lie dense, of a width that is a multiple of 32 and at most 256; at least one query and
// one key; heads of keys that queries share evenly.
bool attends(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// As attention_with_lse(). Scores, softmax and sums are in float32; those of pairs and tiles round
// weights to bfloat16 before they multiply the values; the result is rounded once. It lies in
// memory as [B L H D]; the LSE is of weights that were not rounded. `kernels` are those of tests,
// or none for this machine's.
PartialAttention attend(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                        const AttentionKernels* kernels = nullptr);

}  // namespace braid::ops::cpu
