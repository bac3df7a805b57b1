// Standard output with every write checked: a closed pipe or a full disk is an error.
#pragma once

#include <string_view>

namespace braid {

// Throws Error with the system's reason.
void print(std::string_view text);

// Opens those of descriptors 0 to 2 that the caller closed, so that using them fails. Otherwise the
// next file opened would take one of their numbers and receive what is printed. Writing to a closed
// pipe becomes an error instead of a signal.
void protect_standard_files();

}  // namespace braid
