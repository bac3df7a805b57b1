// Attention as a value: the function a model attends with. Layouts wrap it.
#pragma once

#include <functional>

#include "ops/ops.h"

namespace braid {

// q [B H L D], k v [B G L D] -> [B H L D]; G divides H, as in ops::attention
using Attend = std::function<Tensor(const Tensor& q, const Tensor& k, const Tensor& v)>;

// [B L (H D)] -> [B L H D]; H comes from the tensor, so a share of the heads just works.
Tensor split_heads(const Tensor& x_BLC, std::int64_t head_width);

// `attend` for tensors as projections return them: q [B L H D], k v [B L G D] -> [B L (H D)]
Tensor attend_tokens(const Attend& attend, const Tensor& q_BLHD, const Tensor& k_BLGD,
                     const Tensor& v_BLGD);

}  // namespace braid
