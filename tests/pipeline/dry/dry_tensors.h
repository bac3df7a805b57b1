// Tensors in the form and share that a source would deliver, on the meta device.
#pragma once

#include "weights/sources/source.h"

namespace braid {

std::shared_ptr<TensorSource> dry_tensors(std::shared_ptr<TensorSource> source);

}  // namespace braid
