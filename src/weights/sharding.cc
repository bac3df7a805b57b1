#include "weights/sharding.h"

#include <numeric>

#include "base/error.h"
#include "weights/names.h"

namespace braid {

Sharding column_parallel(std::vector<std::int64_t> parts) {
  return {.split = Split::kColumns, .parts = std::move(parts)};
}

Sharding column_parallel_gathered() { return {.split = Split::kColumnsGathered}; }

Sharding row_parallel(std::vector<std::int64_t> parts) {
  return {.split = Split::kRows, .parts = std::move(parts)};
}

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer) {
  for (const auto& [pattern, sharding] : shardings)
    if (matches(pattern, layer)) return &sharding;
  return nullptr;
}

std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank, int size,
                             const std::string& layer) {
  const auto parts = sharding.parts.empty() ? std::vector{total} : sharding.parts;
  const auto sum = std::accumulate(parts.begin(), parts.end(), std::int64_t(0));
  require(sum == total, "the shardings shares ", layer, " in parts of ", sum, " together, it has ",
          total);
  std::vector<Share> shares;
  std::int64_t begin = 0;
  for (const auto part : parts) {
    require(part % size == 0, "tensor parallelism over ", size, " ranks cannot share the ", part,
            " of ", layer, " evenly");
    shares.push_back({.begin = begin + rank * (part / size), .count = part / size});
    begin += part;
  }
  return shares;
}

}  // namespace braid
