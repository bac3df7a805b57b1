// The flags of `braid convert`.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_convert_flags(CLI::App& command, FlagReader& read, ConvertFlags& flags);
// Throws InputError unless there is something to convert and a place for it.
void check_together(const ConvertFlags& flags);

}  // namespace braid
