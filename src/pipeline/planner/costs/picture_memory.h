// The autoencoder's memory: beside its weights while decoding, and including its encoder's weights
// while encoding.
#pragma once

#include "pipeline/planner/job.h"

namespace braid {

std::int64_t decoding_bytes(const PlanJob& job);
std::int64_t picture_encoding_bytes(const PlanJob& job);  // 0 without pictures

}  // namespace braid
