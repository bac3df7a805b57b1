// Which of LibTorch's kernels attention is computed by on a GPU: the one that its
// scaled_dot_product_attention takes, cuDNN's on compute capability 9 and 10 from cuDNN 9.15.1 on.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

namespace braid::ops {

using at::Tensor;

enum class AttentionKernel { kMath, kFlash, kEfficient, kCudnn };

// "cuDNN", or "FlashAttention 2", and what to do about it where cuDNN has a kernel for a GPU of
// this compute capability.
std::string described(AttentionKernel kernel, int compute_capability);

// For these tensors of a GPU; shapes as those of ops::attention().
AttentionKernel attention_kernel(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD);

// For heads of 128 numbers in bfloat16, as FLUX.1 has them; and described.
AttentionKernel attention_kernel_on(at::Device gpu);
std::string attention_on(at::Device gpu);

}  // namespace braid::ops
