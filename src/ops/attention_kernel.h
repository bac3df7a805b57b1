// The LibTorch kernel that computes attention on a GPU: the one its scaled_dot_product_attention
// chooses, which on compute capability 9 and 10 is cuDNN's from cuDNN 9.15.1 on.
#pragma once

#include <ATen/core/Tensor.h>

#include <optional>
#include <string>

namespace braid::ops {

using at::Tensor;

enum class AttentionKernel { kMath, kFlash, kEfficient, kCudnn };

// "cuDNN", or "FlashAttention 2" with advice if cuDNN has a kernel for this compute capability.
std::string described(AttentionKernel kernel, int compute_capability);

// Chooses the kernel for these GPU tensors, shaped as for ops::attention() or, with a mask, for
// ops::masked_attention(): not every kernel takes one.
AttentionKernel attention_kernel(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                                 const std::optional<Tensor>& is_seen_LS = {});

// How many queries attend at a time where their scores are written out, in float32, for as many
// heads of all pictures together: 256 MiB of scores, but at most 2048 queries and at least 64.
std::int64_t queries_at_once(std::int64_t heads, std::int64_t keys);

// Name and describe the kernel for heads of 128 numbers in bfloat16, as FLUX.1 has them.
AttentionKernel attention_kernel_on(at::Device gpu);
std::string attention_on(at::Device gpu);

}  // namespace braid::ops
