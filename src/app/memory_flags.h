// Flags about how weights are kept.
#pragma once

#include "app/flag_reader.h"

namespace braid {

void add_memory_flags(FlagReader& read, Memory& memory);
// --memory and --host-memory, for commands that choose the others by them.
void add_budget_flags(FlagReader& read, Memory& memory);
// Throws InputError where something is left to a budget and there is none.
void check_budget(const Memory& memory);
// Those of them that say what is quantised.
void add_quantize_flags(FlagReader& read, Memory& memory);

}  // namespace braid
