// Text that ranks tell each other.
#pragma once

#include <string>
#include <vector>

#include "comm/group.h"

namespace braid {

// Every rank's text, by rank. Collective.
std::vector<std::string> all_gather_texts(const Group& group, std::string mine);

}  // namespace braid
