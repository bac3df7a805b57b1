#include "nn/attention.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <vector>

#include "base/error.h"

namespace braid {
namespace {

constexpr std::int64_t kTokens = 2;  // dim of [B H L D]

Tensor heads_first(const Tensor& x_BLHD) { return x_BLHD.transpose(1, 2); }
Tensor tokens_first(const Tensor& x_BHLD) { return x_BHLD.transpose(1, 2).flatten(2); }

}  // namespace

Attend::General Attend::unmasked(Plain attend) {
  return [attend = std::move(attend)](const AttentionInput& in) {
    check(!in.span_L2.defined(), "this attention has no mask, the tokens are causal by blocks");
    const auto all = with_all_keys(in);
    return attend(all.q, all.k, all.v);
  };
}

Tensor attention_here(const AttentionInput& in) {
  if (in.span_L2.defined()) return attention_by_spans(in.q, in.k, in.v, in.span_L2, in.span_L2);
  const auto all = with_all_keys(in);
  return ops::attention(all.q, all.k, all.v);
}

AttentionInput with_all_keys(AttentionInput in) {
  if (!in.before_k.defined()) return in;
  in.k = at::cat({in.before_k, in.k}, kTokens);
  in.v = at::cat({in.before_v, in.v}, kTokens);
  in.before_k = in.before_v = Tensor();
  return in;
}

Tensor seen_keys(const Tensor& span_of_queries_L2, const Tensor& span_of_keys_S2) {
  const auto last_L1 = span_of_queries_L2.narrow(1, 1, 1);
  return last_L1.ge(span_of_keys_S2.select(1, 0));
}

Tensor attention_by_spans(const Tensor& q_BHLD, const Tensor& k_BGSD, const Tensor& v_BGSD,
                          const Tensor& span_of_queries_L2, const Tensor& span_of_keys_S2) {
  const auto keys = std::max<std::int64_t>(1, span_of_keys_S2.size(0));
  const auto at_once = std::max<std::int64_t>(1, kMaskedPairs / keys);
  const auto spans = span_of_queries_L2.split(at_once, 0);
  std::vector<Tensor> chunks;
  for (const auto& q : q_BHLD.split(at_once, kTokens))
    chunks.push_back(
        ops::masked_attention(q, k_BGSD, v_BGSD, seen_keys(spans[chunks.size()], span_of_keys_S2)));
  return chunks.size() == 1 ? chunks.front() : at::cat(chunks, kTokens);
}

Tensor split_heads(const Tensor& x_BLC, std::int64_t head_width) {
  return x_BLC.unflatten(-1, {-1, head_width});
}

Tensor attend_tokens(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                     const Tensor& v_BLGD) {
  return tokens_first(attend(heads_first(q_BLHD), heads_first(k_BLGD), heads_first(v_BLGD)));
}

Tensor attend_tokens(const Attend& attend, const ops::RotatedHeads& heads, const Tensor& v_BLGD) {
  return attend_tokens(attend, heads.q_BLHD, heads.k_BLGD, v_BLGD);
}

Tensor attend_behind_prefix(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                            const Tensor& v_BLGD, const Tensor& span_P2) {
  const auto prefix = span_P2.size(0), all = q_BLHD.size(1);
  if (prefix == 0) return attend_tokens(attend, q_BLHD, k_BLGD, v_BLGD);
  const auto q = heads_first(q_BLHD), k = heads_first(k_BLGD), v = heads_first(v_BLGD);
  const auto first = [&](const Tensor& x) { return x.narrow(kTokens, 0, prefix); };
  const auto rest = [&](const Tensor& x) { return x.narrow(kTokens, prefix, all - prefix); };
  const auto attended = attend({.q = first(q), .k = first(k), .v = first(v), .span_L2 = span_P2});
  if (all == prefix) return tokens_first(attended);
  const auto behind = attend(
      {.q = rest(q), .k = rest(k), .v = rest(v), .before_k = first(k), .before_v = first(v)});
  return at::cat({tokens_first(attended), tokens_first(behind)}, 1);
}

}  // namespace braid
