#include "models/flux3/sharding.h"

#include "base/error.h"

namespace braid {

ShardingTable flux3_sharding(const Flux3Config& c, int size, SharedModulation modulation) {
  require(c.num_heads % size == 0, "tensor parallelism over ", size, " devices cannot share the ",
          c.num_heads, " heads of the transformer evenly");
  const auto h = c.hidden(), m = c.mlp_hidden;
  ShardingTable shardings;
  for (const std::string list : {"txt_mode_blocks.*", "content_mode_blocks.*.*", "single_blocks.*"})
    shardings.insert(shardings.end(), {{list + ".linear1", column_parallel({h, h, h, m, m})},
                                       {list + ".attn_out", row_parallel()},
                                       {list + ".mlp_out", row_parallel()}});
  if (modulation == SharedModulation::kNo) return shardings;
  shardings.push_back({"early_stream_modulations.*.lin", column_parallel_gathered()});
  shardings.push_back({"single_stream_modulations.*.lin", column_parallel_gathered()});
  shardings.push_back({"final_layer.image.adaLN_modulation.1", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
