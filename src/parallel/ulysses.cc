#include "parallel/ulysses.h"

#include <ATen/ATen.h>

#include <algorithm>

namespace braid {
namespace {

constexpr std::int64_t kHeads = 1, kTokens = 2;  // dims of [B H L D]

// [B H L D] <-> [L B H D]: the tokens of a rank lie one behind another, so that what ranks send is
// a run of memory, and what they receive needs no joining.
Tensor tokens_outermost(const Tensor& x_BHLD) { return x_BHLD.permute({2, 0, 1, 3}); }
Tensor heads_outermost(const Tensor& x_LBHD) { return x_LBHD.permute({1, 2, 0, 3}); }

// The heads of R ranks that have as many each.   [B H L D] -> [R L B H/R*D]
Tensor of_each_rank(const Tensor& x_BHLD, int ranks) {
  return x_BHLD.transpose(kHeads, kTokens)
      .unflatten(2, {ranks, -1})
      .flatten(3)
      .permute({2, 1, 0, 3});
}

// Repeats key or value heads, one per query head of the rank. Views need no index, which would have
// to come from the host: a step that is recorded takes nothing from there.
Tensor repeated(const Tensor& x_BGLD, const TradedHeads& heads, std::int64_t group) {
  if (heads.is_grouped) return x_BGLD;
  std::vector<Tensor> by_query;
  for (std::int64_t head = 0; head < heads.kv.count; ++head) {
    const auto first = (heads.kv.begin + head) * group;  // query head of this key head
    const auto begin = std::max(first, heads.q.begin);
    const auto end = std::min(first + group, heads.q.begin + heads.q.count);
    by_query.push_back(x_BGLD.narrow(kHeads, head, 1).expand({-1, end - begin, -1, -1}));
  }
  return at::cat(by_query, kHeads);
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
    const auto received = ranks_.all_to_all_joined(
        by_rank({{Of::kQueries, in.q}, {Of::kKeys, in.k}, {Of::kKeys, in.v}}));
    tokens_ = received.sizes;
    const auto parts =
        heads_outermost(received.x)
            .split_with_sizes({mine_.q.count, mine_.kv.count, mine_.kv.count}, kHeads);
    AttentionInput traded{
        .q = parts[0], .k = repeated_here(parts[1]), .v = repeated_here(parts[2])};
    if (in.span_L2.defined()) traded.span_L2 = ranks_.all_gather(in.span_L2, 0);
    if (!in.before_k.defined()) return traded;
    const auto keys =
        ranks_.all_to_all_joined(by_rank({{Of::kKeys, in.before_k}, {Of::kKeys, in.before_v}}));
    const auto before =
        heads_outermost(keys.x).split_with_sizes({mine_.kv.count, mine_.kv.count}, kHeads);
    traded.before_k = repeated_here(before[0]);
    traded.before_v = repeated_here(before[1]);
    return traded;
  }

  // All heads of my tokens.
  Tensor back(const Tensor& attended_BHLD) const {
    const auto by_token = tokens_outermost(attended_BHLD).contiguous();  // as attention left it
    std::vector<Tensor> of_ranks;
    for (const auto& part : ranks_.all_to_all(by_token.split_with_sizes(tokens_, 0)))
      of_ranks.push_back(part.transpose(0, 1));
    return at::cat(of_ranks, 2).contiguous().transpose(kHeads, kTokens);
  }

 private:
  enum class Of { kQueries, kKeys };  // keys, or values
  using Heads = std::vector<std::pair<Of, Tensor>>;

  TradedHeads heads_of(int rank) const {
    return traded_heads(num_q_, num_kv_, rank, ranks_.shares());
  }
  // Whether all ranks have as many heads, and none the same as another.
  bool is_even() const {
    for (int r = 0; r < ranks_.size(); ++r) {
      const auto heads = heads_of(r);
      if (heads.q.count != mine_.q.count || heads.kv != Share{r * mine_.kv.count, mine_.kv.count})
        return false;
    }
    return mine_.q.count > 0;
  }
  // Each rank's heads [L B H D], one copy for all of them where they are even.
  std::vector<Tensor> by_rank(const Heads& heads) const {
    std::vector<Tensor> parts;
    if (is_even()) {
      for (const auto& [of, x] : heads) parts.push_back(of_each_rank(x, ranks_.size()));
      const auto all = at::cat(parts, 3).contiguous();
      return all.unflatten(3, {-1, heads.front().second.size(3)}).unbind();
    }
    for (int r = 0; r < ranks_.size(); ++r) {
      const auto own = heads_of(r);
      std::vector<Tensor> of_rank;
      for (const auto& [of, x] : heads) {
        const auto& share = of == Of::kQueries ? own.q : own.kv;
        of_rank.push_back(tokens_outermost(x.narrow(kHeads, share.begin, share.count)));
      }
      parts.push_back(at::cat(of_rank, 2));
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
