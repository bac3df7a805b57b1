// Whether the service takes requests, and what clients are told while it does not.
#pragma once

#include "serve/api_error.h"

namespace braid::serve {

enum class Readiness { kLoading, kReady, kDraining, kStopped };

inline ApiError unavailable(Readiness readiness) {
  const bool is_loading = readiness == Readiness::kLoading;
  return busy_for(5,
                  is_loading                          ? "the model is still being loaded"
                  : readiness == Readiness::kDraining ? "the server is about to stop"
                                                      : "the server has stopped",
                  is_loading ? "loading" : "draining");
}

}  // namespace braid::serve
