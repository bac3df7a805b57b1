// How processes that know one address find each other: each says where it listens, then all
// connect.
#pragma once

#include <chrono>
#include <functional>
#include <memory>
#include <string>

#include "comm/launch.h"
#include "comm/process/wire.h"

namespace braid {

// A wire that connects all ranks of `launch`. Throws Error within `patience`, naming the address or
// the missing ranks, the variables that told of them, and BRAID_LAUNCHER. `warn` hears of a wait of
// some seconds; what it throws is thrown once the ranks have met.
using WarnOfWait = std::function<void(const std::string& sentence)>;
std::unique_ptr<Wire> meet_over_sockets(const Launch& launch, std::chrono::milliseconds patience,
                                        const WarnOfWait& warn = {});

// Whether this process has met the others of its launch so, or tried to. What ends it from then on,
// they hear of.
bool have_met_over_sockets();

// A wire over MPI, from the module braid-mpi.so beside the program. Throws InputError saying what
// to install if there is none.
std::unique_ptr<Wire> meet_over_mpi(const Launch& launch);

}  // namespace braid
