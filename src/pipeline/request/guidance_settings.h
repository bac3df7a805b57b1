// A request's guidance: which of it runs, and at what scales.
#pragma once

#include <optional>

#include "pipeline/request/settings.h"

namespace braid {

// The scale of true guidance; nothing where it does not run.
std::optional<double> true_scale(const Request& request, const RequestLimits& limits);

// Fills in the settings of guidance and the negative prompt, and warns of what is not used. Throws
// InputError for scales out of range, and for those that mean nothing to the model.
void settle_guidance(const Request& request, const RequestLimits& limits, const Warn& warn,
                     Settings& settings);

}  // namespace braid
