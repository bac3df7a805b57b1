// Ring attention (Liu et al., 2023): every rank keeps its queries and sees all ranks' keys and
// values in turn; partial results are merged by their log-sum-exp.
#pragma once

#include "braid/layout.h"
#include "comm/group.h"
#include "nn/attention.h"

namespace braid {

// Each rank calls the result with its own tokens; shares may be uneven or empty. A sequence causal
// by blocks is gathered in either form, and so are its spans: with kept keys that happens once.
Attend ring(Group ranks, RingForm form = RingForm::kShift);

// Adds the attention over further keys to that over others, in place; both in float32, disjoint.
// Overwrites `part`.
void merge_into(ops::PartialAttention& sum, ops::PartialAttention part);

}  // namespace braid
