#include "nn/attention.h"

#include <ATen/ATen.h>

namespace braid {

Tensor split_heads(const Tensor& x_BLC, std::int64_t head_width) {
  return x_BLC.unflatten(-1, {-1, head_width});
}

Tensor attend_tokens(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                     const Tensor& v_BLGD) {
  const auto heads_first = [](const Tensor& x_BLHD) { return x_BLHD.transpose(1, 2); };
  const auto attended_BHLD = attend(heads_first(q_BLHD), heads_first(k_BLGD), heads_first(v_BLGD));
  return attended_BHLD.transpose(1, 2).flatten(2);
}

}  // namespace braid
