// A model's blocks, whose weights may be on the device only while they run.
#pragma once

#include <algorithm>
#include <optional>
#include <vector>

#include "weights/weights.h"

namespace braid {

// Blocks [begin, begin + count) of a model, numbered across all its lists of blocks. With
// Ends::kIncluded, the first block brings the layers before it and the last block those after it.
// An empty range at either end holds just the layers there.
enum class Ends { kIncluded, kLeftOut };
struct BlockRange {
  std::int64_t begin, count;
  Ends ends = Ends::kIncluded;
};

// The blocks of a list that are loaded here: [begin, begin + count) of `all`.
struct BlockRun {
  std::int64_t all, begin, count;
  Ends ends = Ends::kIncluded;

  bool has_first() const { return begin == 0 && ends == Ends::kIncluded; }
  bool has_last() const { return begin + count == all && ends == Ends::kIncluded; }
  // The same run within one kind of `num` blocks, whose first block is number `first` of all.
  BlockRun of_kind(std::int64_t first, std::int64_t num) const {
    return {.all = num, .begin = begin - first, .count = count, .ends = ends};
  }
};

// The blocks of `range` among `all`; all of them without a range.
inline BlockRun run_of(const std::optional<BlockRange>& range, std::int64_t all) {
  const auto here = range.value_or(BlockRange{.begin = 0, .count = all});
  return {.all = all, .begin = here.begin, .count = here.count, .ends = here.ends};
}

enum class EndPlace { kHere, kElsewhere };
inline EndPlace place_if(bool is_here) { return is_here ? EndPlace::kHere : EndPlace::kElsewhere; }

// Loads layers before or after the blocks. If they are elsewhere, their weights are checked but not
// read.
template <class End, class... Arguments>
std::optional<End> load_end(const Weights& w, EndPlace place, const Arguments&... arguments) {
  if (place == EndPlace::kHere) return End(w, arguments...);
  (void)End(w.unread(), arguments...);
  return {};
}

template <class Block>
class BlockList {
 public:
  // Block i is built from `w / i` and the arguments. Blocks outside the run are checked but not
  // read.
  template <class... Arguments>
  BlockList(const Weights& w, BlockRun run, const Arguments&... arguments)
      : first_(std::max<std::int64_t>(0, run.begin)), blocks_per_page_(w.blocks_per_page()) {
    auto paged = w;
    const auto end = std::min(run.all, run.begin + run.count);  // a run may go on in other lists
    for (std::int64_t i = 0; i < run.all; ++i) {
      if (i < run.begin || i >= end) {
        (void)Block(w.unread() / i, arguments...);
        continue;
      }
      if (std::int64_t(blocks_.size()) % blocks_per_page_ == 0) {
        const auto in_page = std::min(end - i, blocks_per_page_);
        paged = w.paged(PageLevel::kBlock, std::to_string(i), int(in_page));
        pages_.push_back(paged.page());
      }
      blocks_.emplace_back(paged / i, arguments...);
    }
  }
  template <class... Arguments>
  BlockList(const Weights& w, std::int64_t count, const Arguments&... arguments)
      : BlockList(w, BlockRun{.all = count, .begin = 0, .count = count}, arguments...) {}

  bool empty() const { return blocks_.empty(); }
  std::int64_t size() const { return std::int64_t(blocks_.size()); }

  // Calls visit(i, block) for each block here, in order, while its weights are on the device.
  template <class Visit>
  void for_each(Visit visit) const {
    const auto count = std::int64_t(blocks_.size());
    for (std::int64_t first = 0; first < count; first += blocks_per_page_) {
      const auto in_use = pages_[std::size_t(first / blocks_per_page_)].use();
      for (auto i = first; i < std::min(first + blocks_per_page_, count); ++i)
        visit(first_ + i, blocks_[std::size_t(i)]);
    }
  }

 private:
  std::int64_t first_, blocks_per_page_;
  std::vector<Page> pages_;
  std::vector<Block> blocks_;
};

}  // namespace braid
