#include "parallel/ulysses.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr std::int64_t kHeads = 1, kTokens = 2;  // dims of [B H L D]

std::vector<std::int64_t> sizes_along(const std::vector<Tensor>& parts, std::int64_t dim) {
  std::vector<std::int64_t> sizes;
  for (const auto& part : parts) sizes.push_back(part.size(dim));
  return sizes;
}

// Repeats key or value heads, one per query head of the rank.
Tensor repeated(const Tensor& x_BGLD, const TradedHeads& heads, std::int64_t group) {
  if (heads.is_grouped) return x_BGLD;
  const auto of_q = at::arange(heads.q.begin, heads.q.begin + heads.q.count, at::kLong);
  const auto index = at::floor_divide(of_q, group) - heads.kv.begin;
  return x_BGLD.index_select(kHeads, index.to(x_BGLD.device()));
}

}  // namespace

TradedHeads traded_heads(std::int64_t num_q, std::int64_t num_kv, int rank, const Shares& ranks) {
  const auto q = share_of(num_q, rank, ranks);
  if (q.count == 0) return {.q = q, .kv = {.begin = 0, .count = 0}, .is_grouped = true};
  const auto group = num_q / num_kv;
  const auto begin = q.begin / group, end = (q.begin + q.count - 1) / group + 1;
  const bool is_whole = q.begin % group == 0 && q.count % group == 0;
  return {.q = q,
          .kv = {.begin = begin, .count = end - begin},
          .is_grouped = is_whole || end - begin == 1};
}

namespace {

// The attention of one call, whose heads the ranks trade.
class Trade {
 public:
  Trade(const Group& ranks, const AttentionInput& in)
      : ranks_(ranks),
        num_q_(in.q.size(kHeads)),
        num_kv_(in.k.size(kHeads)),
        mine_(heads_of(ranks.rank())) {}

  // My heads of all ranks' tokens.
  AttentionInput there(const AttentionInput& in) {
    const auto received = ranks_.all_to_all(by_heads(in.q, in.k, in.v));
    tokens_ = sizes_along(received, kTokens);
    const auto parts =
        at::cat(received, kTokens)
            .split_with_sizes({mine_.q.count, mine_.kv.count, mine_.kv.count}, kHeads);
    AttentionInput traded{
        .q = parts[0], .k = repeated_here(parts[1]), .v = repeated_here(parts[2])};
    if (in.span_L2.defined()) traded.span_L2 = ranks_.all_gather(in.span_L2, 0);
    if (!in.before_k.defined()) return traded;
    const auto before = at::cat(ranks_.all_to_all(by_heads({}, in.before_k, in.before_v)), kTokens)
                            .split_with_sizes({mine_.kv.count, mine_.kv.count}, kHeads);
    traded.before_k = repeated_here(before[0]);
    traded.before_v = repeated_here(before[1]);
    return traded;
  }

  // All heads of my tokens.
  Tensor back(const Tensor& attended_BHLD) const {
    return at::cat(ranks_.all_to_all(attended_BHLD.split_with_sizes(tokens_, kTokens)), kHeads);
  }

 private:
  TradedHeads heads_of(int rank) const {
    return traded_heads(num_q_, num_kv_, rank, ranks_.shares());
  }
  // Cuts out each rank's heads; there may be no queries.
  std::vector<Tensor> by_heads(const Tensor& q, const Tensor& k, const Tensor& v) const {
    std::vector<Tensor> parts;
    for (int r = 0; r < ranks_.size(); ++r) {
      const auto heads = heads_of(r);
      std::vector<Tensor> of_rank;
      if (q.defined()) of_rank.push_back(q.narrow(kHeads, heads.q.begin, heads.q.count));
      for (const auto& x : {k, v})
        of_rank.push_back(x.narrow(kHeads, heads.kv.begin, heads.kv.count));
      parts.push_back(at::cat(of_rank, kHeads));
    }
    return parts;
  }
  Tensor repeated_here(const Tensor& x_BGLD) const {
    return repeated(x_BGLD, mine_, num_q_ / num_kv_);
  }

  const Group& ranks_;
  std::int64_t num_q_, num_kv_;
  TradedHeads mine_;
  std::vector<std::int64_t> tokens_;  // of each rank
};

}  // namespace

Attend ulysses(Group ranks, Attend inner) {
  if (ranks.size() == 1) return inner;
  return [=](const AttentionInput& in) {
    Trade trade(ranks, in);
    return trade.back(inner(trade.there(in)));
  };
}

}  // namespace braid
