#include "weights/row_parts.h"

#include <numeric>

#include "base/error.h"

namespace braid {

std::vector<std::int64_t> row_parts(const std::string& layer, std::int64_t rows, std::size_t count,
                                    const ShardingTable& shardings,
                                    const std::vector<int>& parts_of_each) {
  if (count == 1) return {rows};
  const auto* const sharding = find_sharding(shardings, layer);
  if (sharding && sharding->parts.size() >= count && sharding->split != Split::kRows) {
    const auto& parts = sharding->parts;
    auto numbers = parts_of_each;
    if (numbers.empty()) {
      numbers.assign(count, 1);
      numbers.front() += int(parts.size() - count);
    }
    check(numbers.size() == count &&
              std::accumulate(numbers.begin(), numbers.end(), std::size_t(0)) == parts.size(),
          "the ", parts.size(), " parts of ", layer, " are not those of ", count, " tensors");
    std::vector<std::int64_t> widths;
    auto part = parts.begin();
    for (const int number : numbers) {
      widths.push_back(std::accumulate(part, part + number, std::int64_t(0)));
      part += number;
    }
    return widths;
  }
  check(rows % std::int64_t(count) == 0, "cannot split the ", rows, " rows of ", layer, " into ",
        count, " tensors");
  return std::vector<std::int64_t>(count, rows / std::int64_t(count));
}

}  // namespace braid
