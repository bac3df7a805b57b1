#include "models/zimage/sharding.h"

#include <numeric>

namespace braid {
namespace {

constexpr std::int64_t kColumnsTogether = 16;  // products of other widths waste part of a vector

}  // namespace

ShardingTable zimage_sharding(const ZImageConfig& c) {
  const auto h = c.hidden, m = c.mlp_hidden();
  const auto head = c.head_width(), columns = std::gcd(m, kColumnsTogether);
  return {
      {"*.*.attention.qkv", column_parallel({h, h, h}, head)},
      {"*.*.attention.out", row_parallel({}, head)},
      {"*.*.feed_forward.w13", column_parallel({m, m}, columns)},  // [gate | value]
      {"*.*.feed_forward.w2", row_parallel({}, columns)},
  };
}

}  // namespace braid
