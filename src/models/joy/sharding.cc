#include "models/joy/sharding.h"

#include "base/error.h"

namespace braid {

ShardingTable joy_sharding(const JoyConfig& c, int size, SharedModulation modulation) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the transformer evenly");
  const auto h = c.hidden;
  ShardingTable shardings = {
      {"double_blocks.*.attn.img_attn_qkv", column_parallel({h, h, h})},
      {"double_blocks.*.attn.txt_attn_qkv", column_parallel({h, h, h})},
      {"double_blocks.*.attn.img_attn_proj", row_parallel()},
      {"double_blocks.*.attn.txt_attn_proj", row_parallel()},
      {"double_blocks.*.*.net.0.proj", column_parallel()},
      {"double_blocks.*.*.net.2", row_parallel()},
  };
  if (modulation == SharedModulation::kYes)
    shardings.push_back({"condition_embedder.time_proj", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
