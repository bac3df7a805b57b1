// Sums over the ranks, bit-identical over every transport.
#pragma once

#include <ATen/core/Tensor.h>

#include <span>

namespace braid {

// parts[0] + parts[1] + ... in that order: in float32 and rounded once (float64 and integers in
// their own type, bool as `or`). All have the same shape and dtype; the result is on the device of
// parts[at].
at::Tensor sum_in_order(std::span<const at::Tensor> parts, std::size_t at);

// Peak device bytes a rank needs, besides its own tensor, for an all_reduce over a device link.
// Counts what the others send, a share of the sum in float32 and rounded, and the result. For
// element types of up to four bytes. Consecutive all_reduces need no more, captured or not.
std::int64_t all_reduce_bytes(std::int64_t numel, std::int64_t element_bytes, int ranks);

}  // namespace braid
