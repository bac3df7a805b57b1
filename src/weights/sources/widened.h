// The tensors of another source, of which one layer has more inputs than are stored.
#pragma once

#include <memory>
#include <string>

#include "weights/sources/source.h"

namespace braid {

// A dense layer of ours: the weights of its inputs behind the stored ones are zero.
struct WidenedLayer {
  std::string layer;               // "img_in"
  std::int64_t stored_inputs = 0;  // columns
};

std::shared_ptr<TensorSource> widened_tensors(std::shared_ptr<TensorSource> source,
                                              WidenedLayer widened);

}  // namespace braid
