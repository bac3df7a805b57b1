#include "parallel/ring.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

using ops::PartialAttention;

PartialAttention widened(const PartialAttention& part) {
  return {.out_BHLD = part.out_BHLD.to(at::kFloat), .lse_BHL = part.lse_BHL};
}

// The weight of a part in the merged result: exp(lse - merged). Parts without keys get weight 0,
// even if both have none: -inf - -inf is NaN.
Tensor weight_of(const PartialAttention& part, const Tensor& merged_BHL) {
  return at::exp(part.lse_BHL - merged_BHL).nan_to_num(0).unsqueeze(-1);
}

}  // namespace

PartialAttention merge(const PartialAttention& a, const PartialAttention& b) {
  const auto lse = at::logaddexp(a.lse_BHL, b.lse_BHL);
  return {.out_BHLD = a.out_BHLD * weight_of(a, lse) + b.out_BHLD * weight_of(b, lse),
          .lse_BHL = lse};
}

Attend ring(Group ranks, RingForm form) {
  if (ranks.size() == 1) return ops::attention;
  if (form == RingForm::kGather)
    return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
      const auto all = ranks.all_gather(at::stack({k, v}), 3);
      return ops::attention(q, all[0], all[1]);
    };
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    auto keys_values = at::stack({k, v});
    PartialAttention sum;
    for (int hop = 0; hop < ranks.size(); ++hop) {
      std::unique_ptr<Incoming> next;
      if (hop + 1 < ranks.size()) next = ranks.ring_shift(keys_values);
      const auto part = widened(ops::attention_with_lse(q, keys_values[0], keys_values[1]));
      sum = hop == 0 ? part : merge(sum, part);
      if (next) keys_values = next->wait();
    }
    return sum.out_BHLD.to(q.scalar_type());
  };
}

}  // namespace braid
