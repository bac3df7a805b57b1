// How many connections the limit on open files (ulimit -n) leaves room for.
#pragma once

#include <cstdint>

namespace braid::serve {

// Some descriptors stay for the model's files and for other ranks: 128, or three quarters of a
// small limit. Returns at most `wanted`.
int connections_within(std::uint64_t descriptors, int wanted);

// Raises the process's own limit, if the system allows it, to what `wanted` connections and a
// thousand files need, and returns how many connections fit. Call before threads start.
int room_for_connections(int wanted);

}  // namespace braid::serve
