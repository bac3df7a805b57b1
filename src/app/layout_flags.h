// The flags that say how one picture is shared among ranks.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_layout_flags(FlagReader& read, Layout& layout);

}  // namespace braid
