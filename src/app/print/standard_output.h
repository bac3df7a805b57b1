// Standard output, where every write is checked: a closed pipe or a full disk is an error.
#pragma once

#include <string_view>

namespace braid {

// Throws Error naming the system's reason.
void print(std::string_view text);

// Descriptors 0 to 2 that the caller closed are opened so that using them fails; else the next file
// that is opened would take one of their numbers and what is printed would go into it. Writing to a
// closed pipe becomes an error instead of a signal.
void protect_standard_files();

}  // namespace braid
