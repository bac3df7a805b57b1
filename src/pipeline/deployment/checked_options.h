// What can be said of options before anything is opened.
#pragma once

#include "braid/braid.h"

namespace braid {

// Throws InputError naming the field that is out of its range.
void check_options(const PipelineOptions& options);

}  // namespace braid
