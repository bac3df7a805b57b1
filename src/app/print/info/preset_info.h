// What `braid info` prints of presets and of the environment.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// Keys are names; a preset has the devices it is for, and its settings as flags.
OrderedJson list_of_presets();

// Each GPU that the driver lists, with its preset and the name of its data sheet, as `braid plan
// --devices` knows it, or null; whether LibTorch can use it is reported elsewhere.
OrderedJson gpus_info();

// Each variable that the program wants: its value, who set it, its purpose.
OrderedJson environment_info();

}  // namespace braid
