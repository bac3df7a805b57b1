// How processes that know one address find each other: each says where it listens, then all
// connect.
#pragma once

#include <chrono>
#include <memory>

#include "comm/launch.h"
#include "comm/process/wire.h"

namespace braid {

// A wire that connects all ranks of `launch`. Throws Error naming the address, or the ranks missing
// after `patience`.
std::unique_ptr<Wire> meet_over_sockets(const Launch& launch, std::chrono::milliseconds patience);

// A wire over MPI, from the module braid-mpi.so beside the program. Throws InputError saying what
// to install if there is none.
std::unique_ptr<Wire> meet_over_mpi(const Launch& launch);

}  // namespace braid
