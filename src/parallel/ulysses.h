// Ulysses context parallelism (Jacobs et al., 2023): ranks trade tokens for heads, attend to all
// tokens with a share of the heads, and trade back.
#pragma once

#include "comm/group.h"
#include "nn/attention.h"

namespace braid {

// Each rank calls the result with its own tokens and all of its heads. One all_to_all of packed
// q, k and v there, one back. Any number of heads and tokens, also fewer than ranks. Keys and
// values may have fewer heads than queries: those that a rank's queries need go to it.
Attend ulysses(Group ranks, Attend inner);

// What a rank of `size` attends with: a share of the queries' heads, and the heads of keys and
// values that these need. `is_grouped` where these lie as grouped attention wants them; else a rank
// repeats them, one for each of its queries' heads.
struct TradedHeads {
  Share q, kv;
  bool is_grouped;
  std::int64_t kept_kv() const { return is_grouped ? kv.count : q.count; }
};
TradedHeads traded_heads(std::int64_t num_q, std::int64_t num_kv, int rank, int size);

}  // namespace braid
