#include "pipeline/proofs/attention_check.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <utility>

namespace braid {
namespace {

constexpr std::int64_t kTokens = 2;  // dim of [B H L D]

// This rank's queries see the keys of all ranks in the order of ranks: attention asks for none.
Tensor attended_at_once(const Group& context, const AttentionInput& in) {
  const auto own = with_all_keys(in);
  const auto all = [&](const Tensor& x) { return context.all_gather(x, kTokens).to(at::kFloat); };
  const auto q = own.q.to(at::kFloat), k = all(own.k), v = all(own.v);
  if (!in.span_L2.defined()) return ops::attention(q, k, v);
  return attention_by_spans(q, k, v, in.span_L2, context.all_gather(in.span_L2, 0));
}

double difference_between(const Tensor& got_BHLD, const Tensor& want_BHLD) {
  if (want_BHLD.numel() == 0) return 0;
  const auto error = (got_BHLD.to(at::kFloat) - want_BHLD).norm().item<double>();
  if (error == 0) return 0;
  const auto difference = error / want_BHLD.norm().item<double>();
  return std::isfinite(difference) ? difference : INFINITY;
}

}  // namespace

Attend AttentionCheck::around(const Group& context, Attend attend) {
  return [this, context, attend = std::move(attend)](const AttentionInput& in) {
    auto attended = attend(in);
    const auto difference =
        context.size() == 1 ? 0 : difference_between(attended, attended_at_once(context, in));
    largest_ = std::max(largest_.value_or(0), difference);
    return attended;
  };
}

std::optional<double> AttentionCheck::take() { return std::exchange(largest_, std::nullopt); }

}  // namespace braid
