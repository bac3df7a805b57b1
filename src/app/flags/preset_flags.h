// `--preset`: where weights live, chosen by device.
#pragma once

#include <set>

#include "app/flags/flag_reader.h"
#include "base/gpus.h"
#include "pipeline/memory/presets.h"

namespace braid {

// `otherwise`: what the command does without it, for its help.
void add_preset_flag(FlagReader& read, PresetFlags& flags, const std::string& otherwise);

// The preset that `flags` name or, for "auto", the device's; null for "none".
// Throws InputError if there is no such preset.
const Preset* preset_of(const PresetFlags& flags, const std::string& device,
                        const std::optional<Gpu>& gpu);

// The preset's memory settings, except those given on the line, which win.
Memory with_preset(const Preset& preset, const Memory& asked, const std::set<std::string>& given);

// Throws InputError for int8-dynamic on a GPU that does not multiply 8-bit integers.
void check_products(const PipelineOptions& options);

// Applies `flags` to the options' memory, with the same result on all ranks of a host: their
// smallest GPU decides. Without --preset it gets the budget implied by this GPU, unless the line
// says where weights go. options.device is as on the line, the same on all ranks. Throws as
// check_products().
struct MemoryChoice {
  Memory memory;
  std::string said = {};  // for people; empty: nothing was chosen
};
MemoryChoice choose_memory(const PresetFlags& flags, const PipelineOptions& options);

}  // namespace braid
