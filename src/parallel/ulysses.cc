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

TradedHeads traded_heads(std::int64_t num_q, std::int64_t num_kv, int rank, int size) {
  const auto q = share_of(num_q, rank, size);
  if (q.count == 0) return {.q = q, .kv = {.begin = 0, .count = 0}, .is_grouped = true};
  const auto group = num_q / num_kv;
  const auto begin = q.begin / group, end = (q.begin + q.count - 1) / group + 1;
  const bool is_whole = q.begin % group == 0 && q.count % group == 0;
  return {.q = q,
          .kv = {.begin = begin, .count = end - begin},
          .is_grouped = is_whole || end - begin == 1};
}

Attend ulysses(Group ranks, Attend inner) {
  if (ranks.size() == 1) return inner;
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto num_q = q.size(kHeads), num_kv = k.size(kHeads);
    std::vector<Tensor> by_heads;
    for (int r = 0; r < ranks.size(); ++r) {
      const auto heads = traded_heads(num_q, num_kv, r, ranks.size());
      const auto kv = [&](const Tensor& x) {
        return x.narrow(kHeads, heads.kv.begin, heads.kv.count);
      };
      by_heads.push_back(
          at::cat({q.narrow(kHeads, heads.q.begin, heads.q.count), kv(k), kv(v)}, kHeads));
    }
    const auto received = ranks.all_to_all(by_heads);  // my heads of all ranks' tokens
    const auto mine = traded_heads(num_q, num_kv, ranks.rank(), ranks.size());
    const auto parts = at::cat(received, kTokens)
                           .split_with_sizes({mine.q.count, mine.kv.count, mine.kv.count}, kHeads);
    const auto group = num_q / num_kv;
    const auto attended_BHLD =
        inner(parts[0], repeated(parts[1], mine, group), repeated(parts[2], mine, group));
    const auto by_tokens = attended_BHLD.split_with_sizes(sizes_along(received, kTokens), kTokens);
    return at::cat(ranks.all_to_all(by_tokens), kHeads);  // all heads of my tokens
  };
}

}  // namespace braid
