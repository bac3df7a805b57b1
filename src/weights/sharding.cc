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

Sharding column_parallel_grouped(std::vector<std::int64_t> parts, std::int64_t head_width,
                                 std::int64_t num_queries) {
  return {.split = Split::kColumns,
          .outputs = Outputs::Are::kShared,
          .parts = std::move(parts),
          .unit = head_width,
          .num_queries = num_queries};
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

std::vector<std::int64_t> key_heads_of(std::int64_t num_queries, std::int64_t num_keys, int rank,
                                       int size) {
  const auto group = num_queries / num_keys, mine = num_queries / size;
  const auto served = std::gcd(mine, group);  // queries by each of the rank's heads of keys
  std::vector<std::int64_t> heads;
  for (std::int64_t query = 0; query < mine; query += served)
    heads.push_back((rank * mine + query) / group);
  return heads;
}

std::vector<Share> grouped_shares(std::int64_t width, std::int64_t head_width,
                                  std::int64_t num_queries, int rank, int size) {
  std::vector<Share> shares;
  for (const auto head : key_heads_of(num_queries, width / head_width, rank, size)) {
    const bool follows =
        !shares.empty() && shares.back().begin + shares.back().count == head * head_width;
    if (follows)
      shares.back().count += head_width;
    else
      shares.push_back({.begin = head * head_width, .count = head_width});
  }
  return shares;
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
    if (const auto queries = sharding.num_queries; queries > 0) {
      require(queries % size == 0, "tensor parallelism over ", size, " ranks cannot share the ",
              queries, " heads of ", layer, " evenly");
      for (const auto& share : grouped_shares(part, unit, queries, rank, size))
        shares.push_back({.begin = begin + share.begin, .count = share.count});
      begin += part;
      continue;
    }
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
