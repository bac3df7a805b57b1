#include "app/print/info/preset_info.h"

#include <cstdlib>

#include "app/flags/memory_words.h"
#include "app/machine/environment.h"
#include "base/gpus.h"
#include "pipeline/devices/specs.h"
#include "pipeline/memory/presets.h"

namespace braid {
namespace {

const char* setter_name(SetBy who) {
  switch (who) {
    case SetBy::kBraid:
      return "braid";
    case SetBy::kUser:
      return "you";
    case SetBy::kNobody:
      break;
  }
  return "nobody";
}

std::string said_of(const Memory& memory) {
  const auto flags = flags_of(memory);
  return flags.empty() ? "all weights on the device, as they are" : flags;
}

OrderedJson info_of(const Preset& preset) {
  return {{"for", preset.architectures},
          {"least_memory_bytes", preset.least_bytes},
          {"flags", said_of(preset.memory)},
          {"why", preset.why}};
}

// Drivers do not tell the names of AMD's.
std::string gpu_name(const Gpu& gpu) { return gpu.name.empty() ? gpu.architecture : gpu.name; }

OrderedJson data_sheet_of(const Gpu& gpu) {
  const auto card = device_of_card(gpu.name, gpu.architecture, double(gpu.bytes));
  return card ? OrderedJson(card->name) : OrderedJson();
}

}  // namespace

OrderedJson list_of_presets() {
  OrderedJson list;
  for (const auto& preset : known_presets()) list[preset.name] = info_of(preset);
  return list;
}

OrderedJson gpus_info() {
  auto list = OrderedJson::object();
  const auto gpus = find_gpus();
  for (std::size_t i = 0; i < gpus.size(); ++i) {
    const auto* const preset = preset_for(gpus[i].architecture, double(gpus[i].bytes));
    OrderedJson gpu = {{"name", gpu_name(gpus[i])},
                       {"architecture", gpus[i].architecture},
                       {"memory_bytes", gpus[i].bytes},
                       {"data_sheet", data_sheet_of(gpus[i])}};
    gpu["preset"] = preset ? OrderedJson(preset->name) : OrderedJson();
    if (preset) gpu["preset_is"] = said_of(preset->memory);
    if (preset) gpu["because"] = preset->why;
    list[std::to_string(i)] = gpu;
  }
  return list;
}

OrderedJson environment_info() {
  auto list = OrderedJson::object();
  for (const auto& variable : wanted_environment_here()) {
    const auto* const value = std::getenv(variable.name.c_str());
    list[variable.name] = {{"value", value ? OrderedJson(value) : OrderedJson()},
                           {"set_by", setter_name(who_set(variable.name))},
                           {"why", variable.why}};
  }
  return list;
}

}  // namespace braid
