// The memory flags as words.
#pragma once

#include <string>

#include "braid/memory.h"

namespace braid {

const char* name_of(Quantize form);     // "int8"
const char* name_of(OffloadMode mode);  // "block"

// The flags that differ from their defaults, as they would be given: "--quantize int8 --offload
// block"; empty where none does.
std::string flags_of(const Memory& memory);

}  // namespace braid
