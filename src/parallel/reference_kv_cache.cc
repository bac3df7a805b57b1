#include "parallel/reference_kv_cache.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr std::int64_t kKeyTokens = 2;  // dim of [B G L D]

Tensor with_kept(const Tensor& x_BGLD, const Tensor& kept_1GLD) {
  return at::cat({x_BGLD, kept_1GLD.expand({x_BGLD.size(0), -1, -1, -1})}, kKeyTokens);
}

}  // namespace

void ReferenceKvCache::set_use(Use use) {
  use_ = use;
  if (use != Use::kAttend) blocks_.clear();
}

Attend ReferenceKvCache::around(Attend inner) {
  return [this, inner = std::move(inner)](const Tensor& q, const Tensor& k, const Tensor& v) {
    if (use_ == Use::kNone) return inner(q, k, v);
    if (use_ == Use::kAttend) {
      const auto& kept = blocks_.at(next_++);
      return inner(q, with_kept(k, kept.k_1GLD), with_kept(v, kept.v_1GLD));
    }
    blocks_.push_back({.k_1GLD = k.clone(at::MemoryFormat::Contiguous),
                       .v_1GLD = v.clone(at::MemoryFormat::Contiguous)});
    return inner(q, k, v);
  };
}

PredictPart ReferenceKvCache::counted(PredictPart part) {
  return [this, part = std::move(part)](const DenoiserInput& in, const Tensor& state) {
    next_ = 0;
    return part(in, state);
  };
}

std::int64_t ReferenceKvCache::bytes() const {
  std::int64_t sum = 0;
  for (const auto& block : blocks_) sum += std::int64_t(block.k_1GLD.nbytes() * 2);
  return sum;
}

}  // namespace braid
