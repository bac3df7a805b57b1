// Mistakes that do not compile, each beside a twin that does. CTest compiles this file once with
// BRAID_CASE unset (must succeed) and once with each case (must fail).
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

#if BRAID_CASE == 1  // broadcast into a temporary
void bad(const Group& group, const Tensor& x) { group.broadcast_(x.contiguous(), 0); }
#elif BRAID_CASE == 2  // reduce a temporary
void bad(const Group& group, const Tensor& x) { group.all_reduce_(x.to(at::kFloat)); }
#elif BRAID_CASE == 3  // an ignored sum
void bad(const Group& group, const Tensor& x) { group.all_reduce(x); }
#elif BRAID_CASE == 4  // an ignored gather
void bad(const Group& group, const Tensor& x) { group.all_gather(x, 0); }
#elif BRAID_CASE == 5  // a tensor under way that nobody waits for
void bad(const Group& group, const Tensor& x) { group.ring_shift(x); }
#endif

}  // namespace braid
