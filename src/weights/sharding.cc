#include "weights/sharding.h"

#include <numeric>

#include "base/error.h"
#include "weights/names.h"

namespace braid {

Sharding column_parallel(std::vector<std::int64_t> parts, std::int64_t unit) {
  return {.split = Split::kColumns,
          .outputs = Outputs::Are::kShared,
          .parts = std::move(parts),
          .unit = unit};
}

Sharding column_parallel_gathered() {
  return {.split = Split::kColumns, .outputs = Outputs::Are::kGathered};
}

Sharding column_parallel_copied(std::int64_t head_width) {
  return {.split = Split::kColumns,
          .outputs = Outputs::Are::kShared,
          .unit = head_width,
          .has_copies = true};
}

Sharding row_parallel(std::vector<std::int64_t> parts, std::int64_t unit) {
  return {.split = Split::kRows,
          .outputs = Outputs::Are::kSummed,
          .parts = std::move(parts),
          .unit = unit};
}

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer) {
  for (const auto& [pattern, sharding] : shardings)
    if (matches(pattern, layer)) return &sharding;
  return nullptr;
}

Share share_of_part(std::int64_t width, std::int64_t unit, int rank, int size) {
  if (unit == 0) return {.begin = rank * (width / size), .count = width / size};
  const auto all = width / unit;
  if (all < size) return {.begin = rank * all / size * unit, .count = unit};
  const auto units = share_of(all, rank, size);
  return {.begin = units.begin * unit, .count = units.count * unit};
}

std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank, int size,
                             const std::string& layer) {
  const auto parts = sharding.parts.empty() ? std::vector{total} : sharding.parts;
  const auto sum = std::accumulate(parts.begin(), parts.end(), std::int64_t(0));
  require(sum == total, "the sharding splits ", layer, " into parts of ", sum, " together, it has ",
          total);
  std::vector<Share> shares;
  std::int64_t begin = 0;
  for (const auto part : parts) {
    const auto unit = sharding.unit;
    require(unit > 0 || part % size == 0, "tensor parallelism over ", size,
            " ranks cannot share the ", part, " of ", layer, " evenly");
    const bool has_units = unit == 0 || part % unit == 0;
    require(has_units && (unit == 0 || sharding.has_copies || part / unit >= size),
            "tensor parallelism over ", size, " ranks cannot share the ", part, " of ", layer,
            " in multiples of ", unit);
    const auto share = share_of_part(part, unit, rank, size);
    shares.push_back({.begin = begin + share.begin, .count = share.count});
    begin += part;
  }
  return shares;
}

}  // namespace braid
