// What `braid plan --json` prints.
#pragma once

#include "app/print/plan_table.h"

namespace braid {

// One object: the request, the devices, the `layouts` that fit and, with --all, the others. Units
// are seconds and bytes.
std::string plan_json(const PlanReport& report, const std::vector<PlannedLayout>& layouts);

}  // namespace braid
