// How a model is divided under tensor parallelism: one table per model, keyed by layer. Megatron's
// scheme (Shoeybi et al., 2019): a column-parallel layer computes a share of the outputs; the
// following row-parallel layer takes them as a share of its inputs and sums over the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/layout.h"
#include "comm/group.h"

namespace braid {

enum class Split {
  kColumns,  // a share of the outputs: rows of [out in] and of the bias
  kRows,     // a share of the inputs: columns of [out in]
};

// How a layer's outputs are made whole when ranks share it.
struct Outputs {
  enum class Are { kWhole, kShared, kSummed, kGathered } are = Are::kWhole;
  Group group = {};
};

// How one layer is divided. Fused layers, [q|k|v] or [attention|mlp], are divided part by part: a
// contiguous cut would give a rank keys and queries of different heads.
struct Sharding {
  Split split;
  Outputs::Are outputs;
  std::vector<std::int64_t> parts = {};  // widths; empty: one part
  // The width that is never cut, such as a head's; some ranks may get one unit more than others. 0:
  // all ranks get equal shares.
  std::int64_t unit = 0;
  // Whether neighbouring ranks may have copies of a unit, where there are fewer units than ranks.
  bool has_copies = false;
  // Heads of queries. Parts of fewer heads are those of keys or values, which serve as many queries
  // each; a rank gets those that its queries need. 0: parts have no groups
  std::int64_t num_queries = 0;
};

Sharding column_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);
Sharding column_parallel_gathered();
// Heads of keys or values, which several heads of queries share: above their number, copies.
Sharding column_parallel_copied(std::int64_t head_width);
// Queries beside the keys and values that groups of them share; any number of ranks that divides
// `num_queries`.
Sharding column_parallel_grouped(std::vector<std::int64_t> parts, std::int64_t head_width,
                                 std::int64_t num_queries);
Sharding row_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);

// Pattern of a layer's path -> its sharding; `*` is one segment. Layers without a match are whole
// on every rank.
using ShardingTable = std::vector<std::pair<std::string, Sharding>>;

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer);

// The share of rank `rank` of `size` in a part of `width` rows or columns. Fewer units than ranks
// are copied.
Share share_of_part(std::int64_t width, std::int64_t unit, int rank, int size);

// The heads of keys, of `num_keys`, that rank `rank` of `size` needs for its share of the queries.
// Where ranks cut a group, a head comes more than once, so that each serves as many of its queries.
std::vector<std::int64_t> key_heads_of(std::int64_t num_queries, std::int64_t num_keys, int rank,
                                       int size);

// The rows or columns of the heads that key_heads_of() says, in a part of `width`.
std::vector<Share> grouped_shares(std::int64_t width, std::int64_t head_width,
                                  std::int64_t num_queries, int rank, int size);

// The share of rank `rank` of `size` in `total` rows or columns: a run of every part. Throws
// InputError naming the layer unless the parts sum to `total`, and each divides by `size` or, with
// a unit, has at least one unit per rank or may be copied.
std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank, int size,
                             const std::string& layer);

}  // namespace braid
