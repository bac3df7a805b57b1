// What Braid finds to compute with.
#pragma once

#include "app/readable_json.h"

namespace braid {

// Versions, LibTorch's build, the CPU, the devices and the bundled model.
OrderedJson machine_info();

}  // namespace braid
