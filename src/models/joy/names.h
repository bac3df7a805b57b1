// The spellings of adapters for JoyAI-Image-Edit.
#pragma once

#include "weights/adapters/adapter_names.h"

namespace braid {

// Covers diffusers' names, which are ours, and DiffSynth's.
AdapterNames joy_adapter_names();

}  // namespace braid
