// Where the weights of a model of 17 billion parameters go on the GPUs that people have. Data, and
// the two ways to find a row of it; nothing here asks a device.
#pragma once

#include <string>
#include <vector>

#include "braid/memory.h"

namespace braid {

struct Preset {
  std::string name;                        // "rx-7800-xt"
  std::vector<std::string> architectures;  // "gfx1101", "sm_89"; none: chosen by name only
  double least_bytes;                      // of the device's memory
  Memory memory;
  std::string why;
};

const std::vector<Preset>& known_presets();

// The one for a device, null where none is known.
const Preset* preset_for(const std::string& architecture, double bytes);

// What a GPU of so many bytes has for a run whose line says nothing of memory: all but what the
// driver keeps and the allocator loses.
Budget implied_budget(double bytes);

// Throws InputError listing the known names.
const Preset& preset_named(const std::string& name);

}  // namespace braid
