#include "parallel/reference_kv_cache.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kKeyTokens = 2;  // dim of [B G L D]

Tensor with_kept_behind(const Tensor& x_BGLD, const Tensor& kept_1GLD) {
  return at::cat({x_BGLD, kept_1GLD.expand({x_BGLD.size(0), -1, -1, -1})}, kKeyTokens);
}

}  // namespace

void ReferenceKvCache::set_use(Use use, Of of) {
  use_ = use;
  of_ = of;
  if (use != Use::kAttend) blocks_.clear();
}

std::pair<int, int> ReferenceKvCache::whose(const StepInfo& step) const {
  return of_ == Of::kPrefix ? std::pair(step.branch, step.picture) : std::pair(0, 0);
}

AttentionInput ReferenceKvCache::with_kept(AttentionInput in, const Block& kept) const {
  if (of_ == Of::kPrefix) {
    in.before_k = kept.k_BGLD;
    in.before_v = kept.v_BGLD;
    return with_all_keys(std::move(in));
  }
  in.k = with_kept_behind(in.k, kept.k_BGLD);
  in.v = with_kept_behind(in.v, kept.v_BGLD);
  return in;
}

Attend ReferenceKvCache::around(Attend inner) {
  return [this, inner = std::move(inner)](const AttentionInput& in) {
    if (use_ == Use::kNone) return inner(in);
    if (use_ == Use::kAttend) return inner(with_kept(in, here_->at(next_++)));
    here_->push_back({.k_BGLD = in.k.clone(at::MemoryFormat::Contiguous),
                      .v_BGLD = in.v.clone(at::MemoryFormat::Contiguous)});
    return inner(in);
  };
}

PredictPart ReferenceKvCache::counted(PredictPart part) {
  return [this, part = std::move(part)](const DenoiserInput& in, const Tensor& state) {
    const auto here = whose(in.step);
    check(use_ != Use::kAttend || blocks_.contains(here), "no prefix is kept of branch ",
          here.first, " of picture ", here.second);
    here_ = &blocks_[here];
    next_ = 0;
    return part(in, state);
  };
}

std::int64_t ReferenceKvCache::bytes() const {
  std::int64_t sum = 0;
  for (const auto& [whose, blocks] : blocks_)
    for (const auto& block : blocks) sum += std::int64_t(block.k_BGLD.nbytes() * 2);
  return sum;
}

}  // namespace braid
