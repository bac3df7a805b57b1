#include "models/qwen21/sharding.h"

namespace braid {
namespace {

constexpr std::int64_t kTogether = 16;  // columns; products of other widths waste part of a vector

}  // namespace

ShardingTable qwen21_sharding(const Qwen21Config& c, SharedModulation modulation) {
  const auto h = c.hidden, m = c.mlp_hidden;
  const auto columns = m % kTogether == 0 && m / kTogether >= c.num_heads ? kTogether : 1;
  ShardingTable shardings = {
      {"transformer_blocks.*.attn.qkv", column_parallel(Pieces{c.num_heads}, {h, h, h})},
      {"transformer_blocks.*.attn.out", row_parallel(Pieces{c.num_heads})},
      {"transformer_blocks.*.img_mlp.gate_up", column_parallel({m, m}, columns)},
      {"transformer_blocks.*.img_mlp.out", row_parallel({}, columns)},
  };
  if (modulation == SharedModulation::kYes) {
    shardings.push_back({"modulation", column_parallel_gathered()});
    shardings.push_back({"norm_out.linear", column_parallel_gathered()});
  }
  return shardings;
}

}  // namespace braid
