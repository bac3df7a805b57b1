// `--preset`: where weights go, by what is known of the device.
#pragma once

#include <set>

#include "app/flag_reader.h"
#include "app/gpus.h"
#include "pipeline/presets.h"

namespace braid {

void add_preset_flag(FlagReader& read, PresetFlags& flags);

// The preset that `flags` name or, for "auto", that the device has; null for "none".
// Throws InputError where there is no such preset.
const Preset* preset_of(const PresetFlags& flags, const std::string& device,
                        const std::optional<Gpu>& gpu);

// The preset's memory, but for what the line says itself: what was given wins.
Memory with_preset(const Preset& preset, const Memory& asked, const std::set<std::string>& given);

// What `flags` make of the options' memory. Without --preset a GPU's own preset says where weights
// go, and no more than that: the bits of a picture do not depend on it. It does not apply where the
// line says it itself, and where all weights fit.
struct MemoryChoice {
  Memory memory;
  std::string said = {};  // for people; empty: nothing was chosen
};
MemoryChoice choose_memory(const PresetFlags& flags, const PipelineOptions& options);

}  // namespace braid
