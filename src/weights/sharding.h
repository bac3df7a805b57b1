// Who holds what of a model under tensor parallelism: a table per model, in words of its layers.
// Megatron's scheme (Shoeybi et al., 2019): a column-parallel layer makes a share of the outputs,
// the row-parallel layer behind it takes them as a share of its inputs and sums over the ranks.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "braid/layout.h"
#include "comm/group.h"

namespace braid {

enum class Split {
  kColumns,          // a share of the outputs: rows of [out in], and of the bias
  kColumnsGathered,  // the same, and every rank gets all the outputs
  kRows,             // a share of the inputs: columns of [out in]; the outputs are summed
  kRowsUnsummed,     // kRows with the sum forgotten: a mistake, for the tests that find it
};

// How one layer is shared. What is fused, [q|k|v] or [attention|mlp], is shared part by part: a
// contiguous cut would give a rank other heads' keys than queries.
struct Sharding {
  Split split;
  std::vector<std::int64_t> parts = {};  // widths; none: one part
  // What is never cut, a head's width: of its multiples some ranks may have one more than others.
  // 0: every rank has as much.
  std::int64_t unit = 0;
};

Sharding column_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);
Sharding column_parallel_gathered();
Sharding row_parallel(std::vector<std::int64_t> parts = {}, std::int64_t unit = 0);

// Pattern of a layer's path -> its sharding; `*` is one segment. Layers that no row matches are
// whole on every rank.
using ShardingTable = std::vector<std::pair<std::string, Sharding>>;

const Sharding* find_sharding(const ShardingTable& shardings, std::string_view layer);

// What rank `rank` of `size` holds of a part of `width` rows or columns, from its first on.
Share share_of_part(std::int64_t width, std::int64_t unit, int rank, int size);

// What rank `rank` of `size` holds of `total` rows or columns: a run of every part. Throws
// InputError naming the layer unless the parts sum to `total` and each divides by `size`, or by the
// sharding's unit into as many as there are ranks.
std::vector<Share> shares_of(const Sharding& sharding, std::int64_t total, int rank, int size,
                             const std::string& layer);

}  // namespace braid
