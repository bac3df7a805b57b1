// The command `braid generate`.
#pragma once

#include "app/flags.h"
#include "app/phase_log.h"

namespace braid {

// Makes the pictures and prints their paths, or a report. Returns the program's exit code. Throws
// InputError before anything is loaded where that is possible, and Error.
int generate(const GenerateFlags& flags, PhaseLog::Clock::time_point program_began);

}  // namespace braid
