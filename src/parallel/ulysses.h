// Ulysses context parallelism (Jacobs et al., 2023): ranks trade tokens for heads, attend to all
// tokens with a share of the heads, and trade back.
#pragma once

#include "comm/group.h"
#include "nn/attention.h"

namespace braid {

// Each rank calls the result with its own tokens and all of its heads. One all_to_all of packed
// q, k and v there, one back. Any number of heads and tokens, also fewer than ranks.
Attend ulysses(Group ranks, Attend inner);

}  // namespace braid
