// The flags of `braid plan`.
#pragma once

#include "app/flags/flag_reader.h"

namespace braid {

extern const char* const kPlanExamples;

void add_plan_flags(FlagReader& read, PlanFlags& flags);

}  // namespace braid
