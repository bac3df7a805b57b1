#include "comm/shares.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"

namespace braid {
namespace {

std::vector<std::int64_t> counts_of(std::int64_t total, const Shares& ranks) {
  std::int64_t sum = 0;
  for (int r = 0; r < ranks.size(); ++r) sum += ranks.of(r);
  std::vector<std::int64_t> counts, lost;
  for (int r = 0; r < ranks.size(); ++r) {
    counts.push_back(total * ranks.of(r) / sum);
    lost.push_back(total * ranks.of(r) % sum);
  }
  std::vector<std::size_t> order(counts.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](std::size_t a, std::size_t b) { return lost[a] > lost[b]; });
  const auto left = total - std::accumulate(counts.begin(), counts.end(), std::int64_t(0));
  for (std::size_t i = 0; i < std::size_t(left); ++i) ++counts[order[i]];
  return counts;
}

}  // namespace

Shares::Shares(int ranks, std::vector<int> of_ranks) : size_(ranks) {
  if (of_ranks.empty()) return;
  require(int(of_ranks.size()) == ranks, "there should be a share for each of ", ranks,
          " ranks, there are ", of_ranks.size());
  for (const int share : of_ranks) require(share > 0, "a share should be above 0, one is ", share);
  const bool are_equal =
      std::ranges::all_of(of_ranks, [&](int share) { return share == of_ranks.front(); });
  if (!are_equal) of_ranks_ = std::move(of_ranks);
}

int Shares::largest_rank() const {
  if (are_alike()) return 0;
  return int(std::ranges::max_element(of_ranks_) - of_ranks_.begin());
}

std::string to_string(const Shares& shares) {
  std::string text;
  for (int r = 0; r < shares.size(); ++r) text += (r > 0 ? ":" : "") + std::to_string(shares.of(r));
  return text;
}

std::string in_words(const Shares& shares) {
  const auto count = std::to_string(shares.size());
  return shares.are_alike() ? count : count + " (" + to_string(shares) + ")";
}

Share share_of(std::int64_t total, int rank, const Shares& ranks) {
  if (ranks.are_alike()) {
    const auto base = total / ranks.size(), more = total % ranks.size();
    return {.begin = rank * base + std::min<std::int64_t>(rank, more),
            .count = base + (rank < more ? 1 : 0)};
  }
  const auto counts = counts_of(total, ranks);
  return {.begin = std::accumulate(counts.begin(), counts.begin() + rank, std::int64_t(0)),
          .count = counts[std::size_t(rank)]};
}

std::int64_t least_share(std::int64_t total, const Shares& ranks) {
  std::int64_t least = total;
  for (int r = 0; r < ranks.size(); ++r) least = std::min(least, share_of(total, r, ranks).count);
  return least;
}

}  // namespace braid
