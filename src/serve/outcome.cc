#include "serve/outcome.h"

namespace braid::serve {

const char* outcome_name(Outcome outcome) {
  switch (outcome) {
    case Outcome::kDone:
      return "done";
    case Outcome::kFailed:
      return "failed";
    case Outcome::kCancelled:
      return "cancelled";
    case Outcome::kQueueFull:
      return "queue_full";
    case Outcome::kInvalid:
      return "invalid";
  }
  return "";
}

std::optional<Outcome> outcome_of(int status) {
  switch (status) {
    case 200:
      return Outcome::kDone;
    case 400:
    case 404:
    case 408:
    case 413:
    case 415:
    case 431:
      return Outcome::kInvalid;
    case 409:
    case kClientLeft:
      return Outcome::kCancelled;
    case 429:
      return Outcome::kQueueFull;
    case 500:
    case 502:
    case 504:
      return Outcome::kFailed;
    default:
      return std::nullopt;
  }
}

int status_of_end(JobState state, Cause cause) {
  if (state == JobState::kDone) return 200;
  if (cause == Cause::kRequest) return 400;
  if (cause == Cause::kStop) return 503;
  return state == JobState::kCancelled ? 409 : 500;
}

// What the server cuts short is not the same as what it never took, although both are 503.
Outcome outcome_of(const JobResult& result) {
  const auto by_state =
      result.state == JobState::kCancelled ? Outcome::kCancelled : Outcome::kFailed;
  return outcome_of(status_of_end(result.state, result.cause)).value_or(by_state);
}

}  // namespace braid::serve
