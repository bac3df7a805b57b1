// Text that ranks tell each other.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "comm/group.h"

namespace braid {

// The bytes of a text, copied: a group may read them after the text is gone.
Tensor tensor_of_text(std::string_view text);

// Every rank's text, by rank. Collective.
std::vector<std::string> all_gather_texts(const Group& group, std::string_view mine);

}  // namespace braid
