// The interface between the program and its MPI module, which is loaded only under mpirun, so that
// nobody else needs MPI.
#pragma once

#include "comm/process/wire.h"

namespace braid {

inline constexpr const char* kMpiModule = "braid-mpi.so";
inline constexpr const char* kOpenMpiWire = "braid_open_mpi_wire";

// The module's only symbol. Returns a new wire, or nullptr and the reason in `why`, cut to `room`.
using OpenMpiWire = Wire*(char* why, std::size_t room);

}  // namespace braid
