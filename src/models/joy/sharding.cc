#include "models/joy/sharding.h"

namespace braid {

ShardingTable joy_sharding(const JoyConfig& c, SharedModulation modulation) {
  const auto h = c.hidden;
  const Pieces heads{c.num_heads}, channels = pieces_of_mlp(c.mlp_hidden, c.num_heads);
  ShardingTable shardings = {
      {"double_blocks.*.attn.img_attn_qkv", column_parallel(heads, {h, h, h})},
      {"double_blocks.*.attn.txt_attn_qkv", column_parallel(heads, {h, h, h})},
      {"double_blocks.*.attn.img_attn_proj", row_parallel(heads)},
      {"double_blocks.*.attn.txt_attn_proj", row_parallel(heads)},
      {"double_blocks.*.*.net.0.proj", column_parallel(channels)},
      {"double_blocks.*.*.net.2", row_parallel(channels)},
  };
  if (modulation == SharedModulation::kYes)
    shardings.push_back({"condition_embedder.time_proj", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
