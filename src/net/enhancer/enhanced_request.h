// A request before and after its prompts are enhanced.
#pragma once

#include "braid/model_info.h"
#include "braid/request.h"
#include "net/enhancer/enhancer.h"

namespace braid::net {

// Prompt `index` of the request as an enhancer is told of it. It refers to the request's pictures:
// its references, then the one that it starts from.
PlainPrompt plain_prompt(const Request& request, std::size_t index);

// The request with that prompt replaced, and its boxes by the answer's. The answer's size is taken
// if the request has a single prompt and neither a size nor a picture to start from.
Request with_enhanced(Request request, std::size_t index, const EnhancedPrompt& enhanced,
                      const ModelInfo& info);

}  // namespace braid::net
