// Mistakes that do not compile, beside twins that do. CTest compiles this file without them, which
// must succeed, and with them: the compiler must complain in each.
#include <ATen/ATen.h>

#include "comm/group.h"

namespace braid {

Tensor good(const Group& group, Tensor x) {
  group.broadcast_(x, 0);
  group.all_reduce_(x);
  const auto sum = group.all_reduce(x);
  const auto all = group.all_gather(x, 0);
  return sum + all;
}

#ifdef BRAID_MISTAKES
void broadcast_to_temporary(const Group& g, const Tensor& x) { g.broadcast_(x.contiguous(), 0); }
void reduce_temporary(const Group& g, const Tensor& x) { g.all_reduce_(x.to(at::kFloat)); }
void ignore_sum(const Group& g, const Tensor& x) { g.all_reduce(x); }
void ignore_gathered(const Group& g, const Tensor& x) { g.all_gather(x, 0); }
void ignore_under_way(const Group& g, const Tensor& x) { g.ring_shift(x); }
#endif

}  // namespace braid
