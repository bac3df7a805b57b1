#include "weights/row_parts.h"

#include <numeric>

#include "base/error.h"

namespace braid {

std::vector<std::int64_t> row_parts(const std::string& layer, std::int64_t rows, std::size_t count,
                                    const ShardingTable& shardings) {
  if (count == 1) return {rows};
  const auto* const sharding = find_sharding(shardings, layer);
  if (sharding && sharding->parts.size() >= count && sharding->split != Split::kRows) {
    const auto& parts = sharding->parts;
    const auto joined = parts.begin() + std::ptrdiff_t(parts.size() - count) + 1;
    std::vector<std::int64_t> widths = {std::accumulate(parts.begin(), joined, std::int64_t(0))};
    widths.insert(widths.end(), joined, parts.end());
    return widths;
  }
  check(rows % std::int64_t(count) == 0, "cannot split the ", rows, " rows of ", layer, " into ",
        count, " tensors");
  return std::vector<std::int64_t>(count, rows / std::int64_t(count));
}

}  // namespace braid
