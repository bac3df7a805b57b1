#include "models/flux2/sharding.h"

#include <numeric>

namespace braid {

ShardingTable flux2_sharding(const Flux2Config& c, SharedModulation modulation) {
  const auto h = c.hidden(), m = c.mlp_hidden;
  // The blocks tell attention and MLP apart by their proportion, which a cut has to keep.
  const Pieces heads{std::gcd(c.num_heads, m)};
  ShardingTable shardings = {
      {"double_blocks.*.*.qkv", column_parallel(heads, {h, h, h})},
      {"double_blocks.*.*.proj", row_parallel(heads)},
      {"double_blocks.*.*.0", column_parallel(heads, {m, m})},  // [gate | value]
      {"double_blocks.*.*.2", row_parallel(heads)},
      {"single_blocks.*.linear1", column_parallel(heads, {h, h, h, m, m})},
      {"single_blocks.*.linear2", row_parallel(heads, {h, m})},  // its input is [attention | mlp]
  };
  if (modulation == SharedModulation::kNo) return shardings;
  shardings.push_back({"double_stream_modulation_img.lin", column_parallel_gathered()});
  shardings.push_back({"double_stream_modulation_txt.lin", column_parallel_gathered()});
  shardings.push_back({"single_stream_modulation.lin", column_parallel_gathered()});
  shardings.push_back({"final_layer.adaLN_modulation.1", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
