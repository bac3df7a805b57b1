#include "ops/attention_kernel.h"

#include <ATen/ATen.h>
#include <ATen/SDPBackend.h>

#include <algorithm>

#include "base/gpu_runtime.h"

namespace braid::ops {
namespace {

const char* attention_kernel_name(AttentionKernel kernel) {
  switch (kernel) {
    case AttentionKernel::kMath:
      break;
    case AttentionKernel::kFlash:
      return "FlashAttention 2";
    case AttentionKernel::kEfficient:
      return "memory-efficient";
    case AttentionKernel::kCudnn:
      return "cuDNN";
  }
  return "separate products";
}

}  // namespace

std::string described(AttentionKernel kernel, int compute_capability) {
  const std::string name = attention_kernel_name(kernel);
  const int major = compute_capability / 10;
  if (kernel == AttentionKernel::kCudnn || major < 9 || major > 10) return name;
  return name +
         ", for this LibTorch has no cuDNN 9.15.1 or later, or TORCH_CUDNN_SDPA_DEPRIORITIZED is "
         "set";
}

AttentionKernel attention_kernel(const Tensor& q_BHLD, const Tensor& k_BGLD, const Tensor& v_BGLD,
                                 const std::optional<Tensor>& is_seen_LS) {
  const bool are_grouped = q_BHLD.size(1) != k_BGLD.size(1);
  switch (at::SDPBackend(at::_fused_sdp_choice(q_BHLD, k_BGLD, v_BGLD, is_seen_LS, 0.0,
                                               /*is_causal=*/false, /*scale=*/{}, are_grouped))) {
    case at::SDPBackend::cudnn_attention:
      return AttentionKernel::kCudnn;
    case at::SDPBackend::flash_attention:
      return AttentionKernel::kFlash;
    case at::SDPBackend::efficient_attention:
      return AttentionKernel::kEfficient;
    default:
      return AttentionKernel::kMath;
  }
}

std::int64_t queries_at_once(std::int64_t heads, std::int64_t keys) {
  constexpr std::int64_t kScores = 256 << 20, kMost = 2048, kFewest = 64;
  const auto of_a_query = std::max<std::int64_t>(1, heads * keys * std::int64_t(sizeof(float)));
  return std::clamp(kScores / of_a_query, kFewest, kMost);
}

AttentionKernel attention_kernel_on(at::Device gpu) {
  const auto heads = at::empty({1, 1, 128, 128}, at::TensorOptions(gpu).dtype(at::kBFloat16));
  return attention_kernel(heads, heads, heads);
}

std::string attention_on(at::Device gpu) {
  return described(attention_kernel_on(gpu), gpu_runtime::compute_capability(gpu.index()));
}

}  // namespace braid::ops
