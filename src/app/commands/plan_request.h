// The request of `braid plan`.
#pragma once

#include "app/print/plan_table.h"

namespace braid {

// Throw InputError naming the flag.
PlanJob job_of(const PlanFlags& flags);
Machine machine_of(const PlanFlags& flags);

// The remedies that change least. For several devices their tensor parallel ranks share the text
// encoders.
std::vector<PlanRemedy> find_remedies(const PlanJob& job, const Machine& machine);

}  // namespace braid
