// The flags of true classifier-free guidance.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_guidance_flags(FlagReader& read, Request& request);

}  // namespace braid
