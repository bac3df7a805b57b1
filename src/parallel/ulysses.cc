#include "parallel/ulysses.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

constexpr std::int64_t kHeads = 2, kTokens = 3;  // dims of packed [3 B H L D]

std::vector<std::int64_t> sizes_along(const std::vector<Tensor>& parts, std::int64_t dim) {
  std::vector<std::int64_t> sizes;
  for (const auto& part : parts) sizes.push_back(part.size(dim));
  return sizes;
}

}  // namespace

Attend ulysses(Group ranks, Attend inner) {
  if (ranks.size() == 1) return inner;
  return [=](const Tensor& q, const Tensor& k, const Tensor& v) {
    const auto packed = at::stack({q, k, v});
    std::vector<Tensor> by_heads;
    for (int r = 0; r < ranks.size(); ++r) {
      const auto share = share_of(packed.size(kHeads), r, ranks.size());
      by_heads.push_back(packed.narrow(kHeads, share.begin, share.count));
    }
    const auto received = ranks.all_to_all(by_heads);  // my heads of every rank's tokens
    const auto mine = at::cat(received, kTokens);
    const auto attended_BHLD = inner(mine[0], mine[1], mine[2]);
    const auto by_tokens = attended_BHLD.split_with_sizes(sizes_along(received, kTokens), 2);
    return at::cat(ranks.all_to_all(by_tokens), 1);  // every head of my tokens
  };
}

}  // namespace braid
