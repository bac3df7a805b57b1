// Whether a model fits into what a machine has free, and by which flags.
#pragma once

#include <string>

#include "braid/braid.h"

namespace braid {

// Of a picture as the model makes it by itself, on `device` within the budget: "takes 5.9 GB of the
// 8.0 GB that cuda has free, by --quantize int8", or what is missing.
std::string fit_here(PipelineOptions options, const std::string& device, const Budget& budget);

}  // namespace braid
