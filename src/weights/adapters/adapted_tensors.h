// The tensors of another source with adapters fused in:
//
//   W + sum of scale * alpha / rank * B A
//
// computed in float32 for the share that is wanted, and rounded or quantised once. Whatever a load
// makes of weights, pages, codes, shares, it makes of these.
#pragma once

#include "weights/adapters/beside_weights.h"
#include "weights/sources/source.h"

namespace braid {

// What is not fused, by `mode`, is added to `beside`, which knows the part of the model. finish()
// throws InputError for an adapter of which nothing applies.
std::shared_ptr<TensorSource> adapted_tensors(std::shared_ptr<TensorSource> source,
                                              std::vector<AppliedAdapter> adapters,
                                              AdapterMode mode,
                                              std::shared_ptr<BesideWeights> beside);

}  // namespace braid
