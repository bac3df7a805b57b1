#include "models/zimage/sharding.h"

#include "base/error.h"

namespace braid {

ShardingTable zimage_sharding(const ZImageConfig& c, int size) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the transformer evenly");
  const auto h = c.hidden, m = c.mlp_hidden();
  return {
      {"*.*.attention.qkv", column_parallel({h, h, h})},
      {"*.*.attention.out", row_parallel()},
      {"*.*.feed_forward.w13", column_parallel({m, m})},  // [gate | value]
      {"*.*.feed_forward.w2", row_parallel()},
  };
}

}  // namespace braid
