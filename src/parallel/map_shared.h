// Independent pieces of work, shared out among ranks.
#pragma once

#include <functional>

#include "comm/group.h"

namespace braid {

// Maps each item on one of the ranks. The first rank gets all results, in the order of the items;
// the others get none. Results have as many dims as items and their dtype, and any shape.
// Collective: every rank has the same items. Ranks wait for each other without a deadline.
std::vector<Tensor> map_shared(const Group& ranks, const std::vector<Tensor>& items,
                               const std::function<Tensor(const Tensor&)>& map);

}  // namespace braid
