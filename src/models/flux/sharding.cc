#include "models/flux/sharding.h"

namespace braid {

ShardingTable flux_sharding(const FluxConfig& c, SharedModulation modulation) {
  const auto h = c.hidden(), m = c.mlp_hidden();
  const Pieces heads{c.num_heads};
  ShardingTable shardings = {
      {"double_blocks.*.*.qkv", column_parallel(heads, {h, h, h})},
      {"double_blocks.*.*.proj", row_parallel(heads)},
      {"double_blocks.*.*.0", column_parallel(heads)},
      {"double_blocks.*.*.2", row_parallel(heads)},
      {"single_blocks.*.linear1", column_parallel(heads, {h, h, h, m})},
      {"single_blocks.*.linear2", row_parallel(heads, {h, m})},  // its input is [attention | mlp]
  };
  if (modulation == SharedModulation::kNo) return shardings;
  shardings.push_back({"double_blocks.*.*.lin", column_parallel_gathered()});
  shardings.push_back({"single_blocks.*.modulation.lin", column_parallel_gathered()});
  shardings.push_back({"final_layer.adaLN_modulation.1", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
