// Sums over the ranks, bit-identical over every transport.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <span>
#include <vector>

#include "comm/shares.h"

namespace braid {

// A run of the elements, in their order in memory, of one of the tensors that ranks sum together.
struct SumRun {
  std::size_t tensor;  // its number among them
  Share elements;
};

// The runs that rank `rank` of `size` sums: its share of the elements of all `xs`, one behind
// another. At most one run of each tensor; runs are not empty.
std::vector<SumRun> runs_of_rank(std::span<const at::Tensor> xs, int rank, int size);
// The elements of a run, flat, as a view of its dense tensor.
at::Tensor elements_of(const at::Tensor& x, const Share& elements);

// Writes the elements of a run, of a result that ranks sum, into `out`. `parts` are those of each
// rank, flat like `out` and on its device, in rank order; or one part, their sum, which may be
// `out` itself.
using MakeSum = std::function<void(const SumRun& run, std::span<const at::Tensor> parts,
                                   const at::Tensor& out)>;

// parts[0] + parts[1] + ... in that order: in float32 and rounded once (float64 and integers in
// their own type, bool as `or`). All have the same shape and dtype; the result is on the device of
// parts[at].
at::Tensor sum_in_order(std::span<const at::Tensor> parts, std::size_t at);

// Peak device bytes a rank needs, besides its own tensor, for an all_reduce over a device link
// whose MakeSum needs no memory: what the others send, and the result. Consecutive all_reduces need
// no more, captured or not.
std::int64_t all_reduce_bytes(std::int64_t numel, std::int64_t element_bytes, int ranks);

}  // namespace braid
