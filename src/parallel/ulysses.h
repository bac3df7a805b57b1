// Ulysses context parallelism (Jacobs et al., 2023): ranks trade tokens for heads, attend to all
// tokens with a share of the heads, and trade back.
#pragma once

#include "comm/group.h"
#include "nn/attention.h"

namespace braid {

// Each rank calls the result with its own tokens and all of their heads. One all_to_all of packed
// q, k and v there, one back. Any number of heads and tokens, even fewer than ranks. Keys and
// values may have fewer heads than queries: each rank gets those that its queries need. Keys that
// stand before those of the tokens take one all_to_all more, spans one all_gather.
Attend ulysses(Group ranks, Attend inner);

// The heads a rank attends with: a share of the query heads, and the key and value heads these
// need. `is_grouped` if they line up as grouped attention wants them; otherwise the rank repeats
// them, one per query head.
struct TradedHeads {
  Share q, kv;
  bool is_grouped;
  std::int64_t kept_kv() const { return is_grouped ? kv.count : q.count; }
};
TradedHeads traded_heads(std::int64_t num_q, std::int64_t num_kv, int rank, const Shares& ranks);

}  // namespace braid
