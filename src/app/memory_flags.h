// Flags about how weights are kept.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_memory_flags(FlagReader& read, Memory& memory);
// Those of them that say what is quantised.
void add_quantize_flags(FlagReader& read, Memory& memory);

}  // namespace braid
