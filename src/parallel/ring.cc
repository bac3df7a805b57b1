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

void merge_into(PartialAttention& sum, PartialAttention part) {
  const auto lse = at::logaddexp(sum.lse_BHL, part.lse_BHL);
  part.out_BHLD.mul_(weight_of(part, lse));
  sum.out_BHLD.mul_(weight_of(sum, lse)).add_(part.out_BHLD);
  sum.lse_BHL = lse;
}

namespace {

Tensor gathered_attention(const Group& ranks, const AttentionInput& in) {
  const auto all = ranks.all_gather(at::stack({in.k, in.v}), 3);
  if (!in.span_L2.defined()) return ops::attention(in.q, all[0], all[1]);
  const auto span_of_keys = ranks.all_gather(in.span_L2, 0);
  return attention_by_spans(in.q, all[0], all[1], in.span_L2, span_of_keys);
}

Tensor shifted_attention(const Group& ranks, const AttentionInput& in) {
  auto keys_values = at::stack({in.k, in.v});
  PartialAttention sum;
  for (int hop = 0; hop < ranks.size(); ++hop) {
    std::unique_ptr<Incoming> next;
    if (hop + 1 < ranks.size()) next = ranks.ring_shift(keys_values);
    auto part = widened(ops::attention_with_lse(in.q, keys_values[0], keys_values[1]));
    if (hop == 0)
      sum = std::move(part);
    else
      merge_into(sum, std::move(part));
    if (next) keys_values = next->wait();
  }
  return sum.out_BHLD.to(in.q.scalar_type());
}

}  // namespace

Attend ring(Group ranks, RingForm form) {
  if (ranks.size() == 1) return attention_here;
  return [=](const AttentionInput& in) {
    const auto all = with_all_keys(in);
    const bool is_gathered = form == RingForm::kGather || in.span_L2.defined();
    return is_gathered ? gathered_attention(ranks, all) : shifted_attention(ranks, all);
  };
}

}  // namespace braid
