// What `braid info` says of presets and of the environment.
#pragma once

#include "app/print/readable_json.h"

namespace braid {

// By name: the devices it is for and what it says, as flags.
OrderedJson list_of_presets();

// Each GPU that the driver lists, with its preset; whether LibTorch can use it is said elsewhere.
OrderedJson gpus_info();

// Each variable that the program wants: its value, who set it, what it is for.
OrderedJson environment_info();

}  // namespace braid
