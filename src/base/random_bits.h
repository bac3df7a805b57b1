// Numbers that nobody can guess, from the operating system.
#pragma once

#include <cstdint>

namespace braid {

// Throws Error if the system has none.
std::uint64_t random_bits();

}  // namespace braid
