// The memory settings that a caller has stated, even if as their defaults.
#pragma once

#include "braid/memory.h"

namespace braid {

// Neither a preset nor a budget changes a setting that is stated.
struct StatedMemory {
  bool quantize = false, quantize_text = false;
  bool transformer = false, text = false, vae = false;  // modes of Offload
  bool blocks = false, prefetch = false, resident = false, residency = false, pin = false;
};

// Takes the settings that differ from their defaults as stated, for callers that say nothing else.
StatedMemory stated_in(const Memory& memory);

}  // namespace braid
