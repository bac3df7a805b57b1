// The command `braid convert`.
#pragma once

#include "app/flags.h"

namespace braid {

// Prints the path of the new model. Returns the program's exit code. Throws InputError and Error.
int convert_model(const ConvertFlags& flags);

}  // namespace braid
