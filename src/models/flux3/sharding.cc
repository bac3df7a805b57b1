#include "models/flux3/sharding.h"

#include <numeric>

namespace braid {

ShardingTable flux3_sharding(const Flux3Config& c, SharedModulation modulation) {
  const auto h = c.hidden(), m = c.mlp_hidden;
  // The blocks tell attention and MLP apart by their proportion, which a cut has to keep.
  const Pieces heads{std::gcd(c.num_heads, m)};
  ShardingTable shardings;
  for (const std::string list : {"txt_mode_blocks.*", "content_mode_blocks.*.*", "single_blocks.*"})
    shardings.insert(shardings.end(), {{list + ".linear1", column_parallel(heads, {h, h, h, m, m})},
                                       {list + ".attn_out", row_parallel(heads)},
                                       {list + ".mlp_out", row_parallel(heads)}});
  if (modulation == SharedModulation::kNo) return shardings;
  shardings.push_back({"early_stream_modulations.*.lin", column_parallel_gathered()});
  shardings.push_back({"single_stream_modulations.*.lin", column_parallel_gathered()});
  shardings.push_back({"final_layer.image.adaLN_modulation.1", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
