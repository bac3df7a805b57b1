// What this machine offers Braid to compute with.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// Versions, LibTorch's build, the CPU, the devices, the GPUs with their presets, the environment
// set by the program, the bundled model.
OrderedJson machine_info();

}  // namespace braid
