// Where the weights of a model of 17 billion parameters go on common GPUs: a table, and two ways to
// look up a row. Nothing here queries a device.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "braid/memory.h"

namespace braid {

constexpr const char* kAnyGpu = "any";

struct Preset {
  std::string name;  // "rx-7800-xt"
  // "gfx1101", "sm_89"; kAnyGpu: chosen by memory alone; empty: chosen by name only.
  std::vector<std::string> architectures;
  double least_bytes;  // of the device's memory
  Memory memory;
  std::string why;
};

const std::vector<Preset>& known_presets();

// The preset for a device, null if none is known: one for its architecture, else one for any GPU of
// so much memory.
const Preset* preset_for(const std::string& architecture, double bytes);

// The budget of a run that states none, on a GPU of so many bytes, of which `free_bytes` were free
// when the run had begun to use it: all but the runtime's context, the workspaces of matrix
// products and what the allocator loses between its blocks. `free_bytes` count neither the context
// nor what other programs hold, such as a desktop. What links GPUs is not in it: plans count it
// among what a rank holds (RankBytes::link).
Budget implied_budget(double bytes, std::optional<double> free_bytes = {});

// Throws InputError listing the known names.
const Preset& preset_named(const std::string& name);

}  // namespace braid
