// Divides independent pieces of work among ranks.
#pragma once

#include <functional>

#include "comm/group.h"

namespace braid {

// Maps each item on one of the ranks. The first rank gets all results, in item order; the others
// get none. Results may have any shape but the items' dtype and number of dims. Collective: every
// rank passes the same items. Ranks wait for each other without a deadline.
std::vector<Tensor> map_shared(const Group& ranks, const std::vector<Tensor>& items,
                               const std::function<Tensor(const Tensor&)>& map);

}  // namespace braid
