// `braid verify`: the proof that a layout computes what one rank computes.
#pragma once

#include "app/flags.h"

namespace braid {

// 0 when the layout is right, 1 when a block differs.
int verify_layout(const VerifyFlags& flags);

}  // namespace braid
