// How items (heads, tokens, blocks, pictures) are divided among ranks.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace braid {

struct Share {
  std::int64_t begin, count;
  bool operator==(const Share&) const = default;
};

// Ranks that take items in proportion to whole numbers, or alike.
class Shares {
 public:
  Shares(int ranks = 1) : size_(ranks) {}  // alike; a number of ranks says that by itself
  // Ranks take in proportion to `of_ranks`, a number above 0 for each; none, or equal ones, are the
  // same as `ranks` that take alike. Throws InputError unless there are `ranks` of them.
  Shares(int ranks, std::vector<int> of_ranks);

  int size() const { return size_; }
  bool are_alike() const { return of_ranks_.empty(); }
  int of(int rank) const { return are_alike() ? 1 : of_ranks_[std::size_t(rank)]; }
  int largest_rank() const;  // the first of those that take most
  bool operator==(const Shares&) const = default;

 private:
  int size_;
  std::vector<int> of_ranks_ = {};
};

std::string to_string(const Shares& shares);  // "3:2"
std::string in_words(const Shares& shares);   // "2", or "2 (3:2)" where they do not take alike

// The run of `total` items that rank `rank` takes: its proportion, rounded down; what is left goes
// to the ranks whose proportions lost most, of these to the first. Alike: the first total % size
// ranks get one more.
Share share_of(std::int64_t total, int rank, const Shares& ranks);
std::int64_t least_share(std::int64_t total, const Shares& ranks);

}  // namespace braid
