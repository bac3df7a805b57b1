// The sum of what the ranks give, the same bits over every transport.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace braid {

// parts[0] + parts[1] + ... in that order: in float32 and rounded once (float64 in its own type),
// integers in their own type, bool as `or`. All have the same shape and dtype; the result lies on
// the device of parts[at].
at::Tensor sum_in_order(std::span<const at::Tensor> parts, std::size_t at);

// The most that a rank's device holds, beside the tensor that it gives, while one of a type of up
// to four bytes is reduced over a link of the devices: what the others send, a share of the sum in
// float32 and rounded, and the result. No more when many follow each other, recorded or not.
std::int64_t all_reduce_bytes(std::int64_t numel, std::int64_t element_bytes, int ranks);

}  // namespace braid
