// How weights are kept where options leave it to the device: by a preset, or by a budget of the
// GPU's memory.
#pragma once

#include "braid/braid.h"
#include "pipeline/devices/host.h"
#include "pipeline/memory/presets.h"
#include "pipeline/memory/stated.h"

namespace braid {

struct MemoryByDevice {
  Memory memory;
  const Preset* preset = nullptr;  // that was applied
  bool is_budget_implied = false;
};

// Applies options.memory.preset; without one and with Fit::kAuto, the budget implied by the GPU,
// unless a mode of offload or a budget is stated. With the same result on all ranks of a host:
// their smallest GPU decides. The devices are as asked for, the same on all ranks. Throws
// InputError.
MemoryByDevice memory_by_device(const PipelineOptions& options, const StatedMemory& stated,
                                const Host& host);

// Whether tokens are quantized too, so that codes multiply codes; and why a device cannot.
bool asks_int8_products(const Memory& memory);
std::string no_products_of_codes(const std::string& device, const std::string& kind);

// The preset of that name or, for "auto", the device's; null for "none" and "".
// Throws InputError if there is no such preset.
const Preset* preset_of(const std::string& name, const std::string& device,
                        const std::optional<Gpu>& gpu);

// The preset's memory settings, except for those stated, which win.
Memory with_preset(const Preset& preset, const Memory& asked, const StatedMemory& stated);

}  // namespace braid
