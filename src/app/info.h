// The command `braid info`.
#pragma once

#include "app/flags.h"

namespace braid {

// Prints what is known about a picture, or about this machine and, with a model, about that.
// Returns the program's exit code. Throws InputError and Error.
int info(const InfoFlags& flags);

}  // namespace braid
