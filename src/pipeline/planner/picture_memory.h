// What the autoencoder takes beside its weights while it decodes, and with its encoder's weights
// while pictures go in.
#pragma once

#include "pipeline/planner/job.h"

namespace braid {

std::int64_t decoding_bytes(const PlanJob& job);
std::int64_t picture_encoding_bytes(const PlanJob& job);  // 0 without pictures

}  // namespace braid
