#include "models/krea2/sharding.h"

namespace braid {
namespace {

constexpr std::int64_t kMlpColumnsTogether = 16;  // products of other widths waste part of a vector

}  // namespace

ShardingTable krea2_sharding(const Krea2Config& config, SharedModulation modulation) {
  const auto& c = config.image;
  const auto h = c.hidden, kv = c.kv_width(), m = c.mlp_hidden;
  const bool has_runs = m % kMlpColumnsTogether == 0 && m / kMlpColumnsTogether >= c.num_heads;
  const auto columns = has_runs ? kMlpColumnsTogether : 1;
  ShardingTable shardings = {
      {"transformer_blocks.*.attn.qg",
       column_parallel(Pieces{c.num_heads}, {h, h})},  // [queries | gate]
      {"transformer_blocks.*.attn.kv",
       column_parallel_grouped({kv, kv}, c.head_width(), c.num_heads)},
      {"transformer_blocks.*.attn.out", row_parallel(Pieces{c.num_heads})},
      {"transformer_blocks.*.mlp.gate_up", column_parallel({m, m}, columns)},
      {"transformer_blocks.*.mlp.down", row_parallel({}, columns)},
  };
  if (modulation == SharedModulation::kYes)
    shardings.push_back({"time_mod_proj", column_parallel_gathered()});
  return shardings;
}

}  // namespace braid
