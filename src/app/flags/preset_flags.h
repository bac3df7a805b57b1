// `--preset`: where weights go, by what is known of the device.
#pragma once

#include <set>

#include "app/flags/flag_reader.h"
#include "app/machine/gpus.h"
#include "pipeline/memory/presets.h"

namespace braid {

// `otherwise`: what the command does without it, for its help.
void add_preset_flag(FlagReader& read, PresetFlags& flags, const std::string& otherwise);

// The preset that `flags` name or, for "auto", that the device has; null for "none".
// Throws InputError where there is no such preset.
const Preset* preset_of(const PresetFlags& flags, const std::string& device,
                        const std::optional<Gpu>& gpu);

// The preset's memory, but for what the line says itself: what was given wins.
Memory with_preset(const Preset& preset, const Memory& asked, const std::set<std::string>& given);

// What `flags` make of the options' memory, the same on all ranks of a host: the smallest of their
// GPUs decides. Without --preset it gets the budget that this GPU implies, unless the line says
// itself where weights go. options.device is what the line says, the same on all ranks.
struct MemoryChoice {
  Memory memory;
  std::string said = {};  // for people; empty: nothing was chosen
};
MemoryChoice choose_memory(const PresetFlags& flags, const PipelineOptions& options);

}  // namespace braid
