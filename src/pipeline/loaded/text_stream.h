// The stream of the text half of double blocks.
#pragma once

#include <c10/core/Stream.h>

#include <optional>
#include <string>

#include "pipeline/deployment/deployment.h"

namespace braid {

// Why the text half shares the image half's stream on a rank's device; empty: it has its own.
std::string why_text_shares_stream(const Deployment& deployment, at::Device device);

// A stream for it, or none. Warns if there is none although the options ask for one.
std::optional<c10::Stream> text_stream(const Deployment& deployment, at::Device device,
                                       const Warn& warn = {});

}  // namespace braid
