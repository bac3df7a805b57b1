// The tensors of another source with adapters fused in:
//
//   W + sum of scale * alpha / rank * B A
//
// computed in float32 for the wanted share, then rounded or quantized once. A load treats the
// results like stored weights: pages, codes and shares work alike.
#pragma once

#include "weights/adapters/unmerged_adapters.h"
#include "weights/sources/source.h"

namespace braid {

// Changes that `mode` does not fuse are added to `unmerged`, which knows the part of the model.
// finish() throws InputError for an adapter nothing of which applies.
std::shared_ptr<TensorSource> adapted_tensors(std::shared_ptr<TensorSource> source,
                                              std::vector<AppliedAdapter> adapters,
                                              AdapterMode mode,
                                              std::shared_ptr<UnmergedAdapters> unmerged);

}  // namespace braid
