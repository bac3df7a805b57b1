// Whether a model fits into a machine's free memory, and with which flags.
#pragma once

#include <string>

#include "braid/braid.h"

namespace braid {

// For a picture of the model's defaults, on `device` within the budget: "takes 5.9 GB of the 8.0 GB
// that cuda has free, by --quantize int8", or what is missing.
std::string fit_here(PipelineOptions options, const std::string& device, const Budget& budget);

}  // namespace braid
