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

Sharding column_parallel(Pieces pieces, std::vector<std::int64_t> parts) {
  return {.split = Split::kColumns,
          .outputs = Outputs::Are::kShared,
          .parts = std::move(parts),
          .pieces = pieces.count};
}

Sharding column_parallel_gathered() {
  return {.split = Split::kColumns, .outputs = Outputs::Are::kGathered, .unit = 1};
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

Sharding row_parallel(Pieces pieces, std::vector<std::int64_t> parts) {
  return {.split = Split::kRows,
          .outputs = Outputs::Are::kSummed,
          .parts = std::move(parts),
          .pieces = pieces.count};
}

Pieces pieces_of_mlp(std::int64_t channels, std::int64_t num_heads) {
  constexpr std::int64_t kTogether = 16;
  if (channels % num_heads == 0) return {num_heads};
  const bool has_runs = channels % kTogether == 0 && channels / kTogether >= num_heads;
  return {has_runs ? channels / kTogether : channels};
}

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer) {
  for (const auto& [pattern, sharding] : shardings)
    if (matches(pattern, layer)) return &sharding;
  return nullptr;
}

std::vector<std::int64_t> key_heads_of(std::int64_t num_queries, std::int64_t num_keys, int rank,
                                       const Shares& ranks) {
  const auto group = num_queries / num_keys;
  const auto mine = share_of(num_queries, rank, ranks);
  // queries by each of the rank's heads of keys, none of which serves two groups
  const auto served = std::gcd(std::gcd(mine.begin, mine.count), group);
  std::vector<std::int64_t> heads;
  for (std::int64_t query = mine.begin; query < mine.begin + mine.count; query += served)
    heads.push_back(query / group);
  return heads;
}

namespace {

// The rows or columns of the heads that key_heads_of() says, in a part of `width`.
std::vector<Share> grouped_shares(const Sharding& s, std::int64_t width, int rank,
                                  const Shares& ranks) {
  std::vector<Share> shares;
  for (const auto head : key_heads_of(s.num_queries, width / s.unit, rank, ranks)) {
    const bool follows =
        !shares.empty() && shares.back().begin + shares.back().count == head * s.unit;
    if (follows)
      shares.back().count += s.unit;
    else
      shares.push_back({.begin = head * s.unit, .count = s.unit});
  }
  return shares;
}

// How many pieces a part is cut into, of which none is divided.
std::int64_t pieces_of(const Sharding& s, std::int64_t width, const Shares& ranks) {
  if (s.num_queries > 0) return s.num_queries;
  if (s.pieces > 0) return s.pieces;
  return s.unit > 0 ? width / s.unit : ranks.size();
}

void check_divides(const Sharding& s, std::int64_t width, const Shares& ranks,
                   const std::string& layer) {
  const auto refuse = [&](const std::string& how) {
    throw InputError(text_of("tensor parallelism over ", ranks.size(), " ranks cannot share the ",
                             width, " of ", layer, how));
  };
  const bool has_pieces = s.unit > 0 || s.pieces > 0;
  if (!has_pieces && !ranks.are_alike()) refuse(" in the proportion " + to_string(ranks));
  if (!has_pieces && width % ranks.size() != 0) refuse(" evenly");
  if (s.unit > 0 && width % s.unit != 0) refuse(text_of(" in multiples of ", s.unit));
  if (s.pieces > 0 && width % s.pieces != 0) refuse(text_of(" in ", s.pieces, " pieces"));
  const auto pieces = pieces_of(s, width, ranks);
  for (int r = 0; r < ranks.size(); ++r)
    if (share_of(pieces, r, ranks).count == 0)
      refuse(text_of(": there ", pieces == 1 ? "is 1 piece" : text_of("are ", pieces, " pieces"),
                     " that cannot be cut, and none for rank ", r));
}

}  // namespace

std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank,
                             const Shares& ranks, const std::string& layer) {
  const auto parts = sharding.parts.empty() ? std::vector{total} : sharding.parts;
  const auto sum = std::accumulate(parts.begin(), parts.end(), std::int64_t(0));
  require(sum == total, "the sharding splits ", layer, " into parts of ", sum, " together, it has ",
          total);
  std::vector<Share> shares;
  std::int64_t begin = 0;
  for (const auto width : parts) {
    check_divides(sharding, width, ranks, layer);
    auto runs = std::vector<Share>();
    if (sharding.num_queries > 0) {
      runs = grouped_shares(sharding, width, rank, ranks);
    } else {
      const auto pieces = pieces_of(sharding, width, ranks);
      const auto mine = share_of(pieces, rank, ranks);
      const auto piece = width / pieces;
      runs = {{.begin = mine.begin * piece, .count = mine.count * piece}};
    }
    for (const auto& run : runs) shares.push_back({.begin = begin + run.begin, .count = run.count});
    begin += width;
  }
  return shares;
}

}  // namespace braid
