// `braid plan`: what each layout of some devices would take.
#pragma once

#include "app/flags.h"

namespace braid {

// 0 when some layout fits, 1 when none does.
int plan(const PlanFlags& flags);

}  // namespace braid
