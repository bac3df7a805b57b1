// Codings of weights that Braid cannot read: which one a checkpoint has, and what to do.
#pragma once

#include <string>

#include "weights/files/checkpoint.h"

namespace braid {

// Throws InputError naming the coding, if tensors that only it has, or the `quantization_config` of
// the config.json beside `source` together with coded tensors, tell it.
void refuse_other_coding(const StoredByName& tensors, const std::filesystem::path& source);

}  // namespace braid
