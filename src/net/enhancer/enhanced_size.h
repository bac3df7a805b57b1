// The size that an enhancer's answer asks for.
#pragma once

#include <optional>
#include <vector>

#include "net/enhancer/enhanced_prompt.h"

namespace braid::net {

// A shape gets the area of `usual`, the model's own size, in multiples of 32 pixels at least; for
// an area of 2048x2048 it is the size in the card of Qwen-Image-2.1's enhancers. The shape of a
// picture gets that picture's size, unless its area is larger than that. An explicit size stays as
// it is. Nothing if the answer names none. `multiple` divides all results but explicit ones.
std::optional<WidthHeight> enhanced_size(const EnhancedPrompt& enhanced, WidthHeight usual,
                                         int multiple, const std::vector<WidthHeight>& pictures);

}  // namespace braid::net
