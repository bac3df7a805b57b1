#include "models/flux2/sharding.h"

#include "base/error.h"

namespace braid {

ShardingTable flux2_sharding(const Flux2Config& c, int size, SharedModulation modulation) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the transformer evenly");
  const auto h = c.hidden(), m = c.mlp_hidden;
  ShardingTable shardings = {
      {"double_blocks.*.*.qkv", column_parallel({h, h, h})},
      {"double_blocks.*.*.proj", row_parallel()},
      {"double_blocks.*.*.0", column_parallel({m, m})},  // [gate | value]
      {"double_blocks.*.*.2", row_parallel()},
      {"single_blocks.*.linear1", column_parallel({h, h, h, m, m})},
      {"single_blocks.*.linear2", row_parallel({h, m})},  // its input is [attention | mlp]
  };
  if (modulation == SharedModulation::kNo) return shardings;
  shardings.push_back({"double_stream_modulation_img.lin", column_parallel_gathered()});
  shardings.push_back({"double_stream_modulation_txt.lin", column_parallel_gathered()});
  shardings.push_back({"single_stream_modulation.lin", column_parallel_gathered()});
  shardings.push_back({"final_layer.adaLN_modulation.1", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
