// What products of weights in codes hold besides them.
#pragma once

#include "pipeline/planner/costs/held.h"
#include "pipeline/planner/job.h"

namespace braid {

// The numbers of a part's largest matrix in codes, while it multiplies; on a GPU only a panel of
// those that are as a file has them. `form`: of what is quantized.
std::int64_t widened_bytes(const PlanJob& job, const PartPages& pages, Quantize form);

// Whether the transformer's tokens are quantized to multiply codes by codes: because that is asked
// for, or because its file has codes that are made for it.
bool runs_int8_products(const PlanJob& job);

}  // namespace braid
