// What ends a rank before it meets the others: they would wait for it in vain, and not know why.
#pragma once

#include <chrono>
#include <exception>

#include "comm/launch.h"

namespace braid {

// Meets the ranks of `launch` only to end their run with what ended this one, unless it has met
// them before. Returns whether the first rank tells people of the same failure: its own, or this
// rank's. False if the others do not come within `patience`, and for MPI, whose meeting cannot be
// interrupted: mpirun ends the other ranks itself.
bool is_told_to_ranks(const Launch& launch, const std::exception_ptr& failure,
                      std::chrono::milliseconds patience);

}  // namespace braid
