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
  // What is never cut: a width, such as a head's, or so many equal pieces of every part, which
  // divides the channels of an MLP as the heads beside it. Ranks that take alike may differ by one
  // of them. Both 0: there are only equal shares.
  std::int64_t unit = 0, pieces = 0;
  // Heads of queries. Parts of fewer heads are those of keys or values, which serve as many queries
  // each; a rank gets those that its queries need. 0: parts have no groups
  std::int64_t num_queries = 0;
};

struct Pieces {
  std::int64_t count;
};

Sharding column_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);
Sharding column_parallel(Pieces pieces, std::vector<std::int64_t> parts = {});
Sharding column_parallel_gathered();
// Keys or values, or queries beside them, in heads of one width: those that groups of `num_queries`
// heads share. Ranks that a group is divided among have copies of its head.
Sharding column_parallel_grouped(std::vector<std::int64_t> parts, std::int64_t head_width,
                                 std::int64_t num_queries);
Sharding row_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);
Sharding row_parallel(Pieces pieces, std::vector<std::int64_t> parts = {});
// An MLP beside `num_heads` heads has as many pieces, if its channels divide into them, else pieces
// of 16 channels (products of other widths waste part of a vector) or of one.
Pieces pieces_of_mlp(std::int64_t channels, std::int64_t num_heads);

// Pattern of a layer's path -> its sharding; `*` is one segment. Layers without a match are whole
// on every rank. One table serves any number of ranks: shares_of() refuses those that it cannot.
using ShardingTable = std::vector<std::pair<std::string, Sharding>>;

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer);

// The heads of keys, of `num_keys`, that a rank needs for its share of the queries. Where ranks cut
// a group, a head comes more than once, so that each serves as many of the rank's queries.
std::vector<std::int64_t> key_heads_of(std::int64_t num_queries, std::int64_t num_keys, int rank,
                                       const Shares& ranks);

// The share of a rank in `total` rows or columns: a run of every part, or several of a part in
// groups. Throws InputError naming the layer unless the parts sum to `total`, and each divides into
// units or pieces, at least one for each rank; without those, into equal shares.
std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank,
                             const Shares& ranks, const std::string& layer);

}  // namespace braid
