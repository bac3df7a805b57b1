// How requests for pictures end, for the counter at /metrics: one table for those that are refused
// and for those whose job ends.
#pragma once

#include <array>
#include <optional>

#include "serve/jobs/job.h"

namespace braid::serve {

inline constexpr int kClientLeft = 499;  // nginx's status for a client that has gone

enum class Outcome { kDone, kFailed, kCancelled, kQueueFull, kInvalid };
inline constexpr std::array kOutcomes = {Outcome::kDone, Outcome::kFailed, Outcome::kCancelled,
                                         Outcome::kQueueFull, Outcome::kInvalid};
const char* outcome_name(Outcome outcome);

// The answer's HTTP status decides. Some say nothing of a request: those for strangers without the
// key, and those of a server that is loading or busy.
std::optional<Outcome> outcome_of(int status);

// The HTTP status for a client that waited for a job which ended so.
int status_of_end(JobState state, Cause cause);
Outcome outcome_of(const JobResult& result);

}  // namespace braid::serve
