// The tensors of another source, where one layer has more inputs than stored.
#pragma once

#include <memory>
#include <string>

#include "weights/sources/source.h"

namespace braid {

// One of our dense layers; the weights of inputs beyond the stored ones are zero.
struct WidenedLayer {
  std::string layer;               // "img_in"
  std::int64_t stored_inputs = 0;  // columns
};

std::shared_ptr<TensorSource> widened_tensors(std::shared_ptr<TensorSource> source,
                                              WidenedLayer widened);

}  // namespace braid
