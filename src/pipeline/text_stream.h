// The stream of the text half of double blocks.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <string>

#include "pipeline/families/family.h"
#include "pipeline/model_options.h"

namespace braid {

// Why the text half shares the image half's stream; empty: it has its own. Depends on the device,
// layout, memory and wish of `options`.
std::string why_text_shares_stream(const Family& family, const ModelOptions& options);

// A stream for it, or none. Warns if there is none although the options ask for one.
std::optional<c10::Stream> text_stream(const Family& family, const ModelOptions& options);

}  // namespace braid
