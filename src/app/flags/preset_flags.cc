#include "app/flags/preset_flags.h"

#include <algorithm>

#include "app/flags/memory_words.h"
#include "app/print/readable.h"
#include "base/error.h"
#include "comm/launch.h"
#include "pipeline/devices.h"

namespace braid {
namespace {

bool is_any_given(const std::set<std::string>& given, std::initializer_list<const char*> flags) {
  for (const auto* const flag : flags)
    if (given.contains(flag)) return true;
  return false;
}

// The devices of the ranks on this host; under a launcher "cuda" means one per rank.
std::vector<std::string> devices_here(const PipelineOptions& options) {
  auto names = device_names(options);
  const auto launch = read_launch();
  if (!launch || names.front() != "cuda") return names;
  const auto count = std::min(find_gpus().size(), std::size_t(launch->size));
  names.assign(count, "cuda:");
  for (std::size_t i = 0; i < count; ++i) names[i] += std::to_string(i);
  return names;
}

struct NamedGpu {
  std::string device;
  std::optional<Gpu> gpu;  // empty: one of the devices is no GPU, or missing
};

NamedGpu smallest_gpu(const PipelineOptions& options) {
  NamedGpu smallest{.device = device_names(options).front(), .gpu = {}};
  for (const auto& device : devices_here(options)) {
    const auto gpu = gpu_named(device);
    if (!gpu) return {.device = device, .gpu = {}};
    if (!smallest.gpu || gpu->bytes < smallest.gpu->bytes) smallest = {device, gpu};
  }
  return smallest;
}

// What is free on a GPU counts only where one process uses it: of ranks that a launcher started,
// each would find what the others hold by then, and all must choose the same.
Budget least_budget(const PipelineOptions& options) {
  Budget least;
  for (const auto& device : devices_here(options)) {
    std::optional<double> free;
    if (!read_launch()) free = free_gpu_bytes(device);
    const auto budget = implied_budget(double(gpu_named(device)->bytes), free);
    if (!least.is_set() || budget.device < least.device) least = budget;
  }
  return least;
}

Memory placed_by_device(const PresetFlags& flags, const PipelineOptions& options) {
  auto memory = options.memory;
  if (is_any_given(flags.given, {"--offload", "--memory", "--host-memory"})) return memory;
  const auto gpu = smallest_gpu(options).gpu;
  if (!gpu || gpu->bytes == 0) return memory;
  const auto fixed = memory.budget.fixed;
  memory.budget = least_budget(options);
  memory.budget.fixed = fixed;
  return memory;
}

}  // namespace

void add_preset_flag(FlagReader& read, PresetFlags& flags, const std::string& otherwise) {
  read.text("--preset", "NAME", "Memory",
            "How and where weights are stored, by device: auto (what this\n"
            "one needs), none, or a name listed by braid info --presets.\n"
            "Other flags take precedence. Default: " +
                otherwise,
            [&](const std::string&, const std::string& text) {
              if (text != "auto" && text != "none") (void)preset_named(text);
              flags.name = text;
            });
}

const Preset* preset_of(const PresetFlags& flags, const std::string& device,
                        const std::optional<Gpu>& gpu) {
  if (flags.name.empty() || flags.name == "none") return nullptr;
  if (flags.name != "auto") return &preset_named(flags.name);
  require(gpu.has_value(), "--preset auto goes by the GPU, the device is ", device,
          ": braid info --presets lists names to choose from");
  const auto* const preset = preset_for(gpu->architecture, double(gpu->bytes));
  require(preset != nullptr, "--preset auto has nothing for ", device, ", a ", gpu->architecture,
          " of ", readable_bytes(double(gpu->bytes)),
          ": braid info --presets lists names to choose from");
  return preset;
}

Memory with_preset(const Preset& preset, const Memory& asked, const std::set<std::string>& given) {
  auto memory = asked;
  const auto take = [&](std::initializer_list<const char*> flags, auto& field, const auto& value) {
    if (!is_any_given(given, flags)) field = value;
  };
  const auto& offload = preset.memory.offload;
  take({"--quantize"}, memory.quantize, preset.memory.quantize);
  take({"--quantize-text"}, memory.quantize_text, preset.memory.quantize_text);
  take({"--offload"}, memory.offload.transformer, offload.transformer);
  take({"--offload", "--offload-text"}, memory.offload.text, offload.text);
  take({"--offload", "--offload-vae"}, memory.offload.vae, offload.vae);
  take({"--offload-group"}, memory.offload.blocks, offload.blocks);
  take({"--prefetch"}, memory.offload.prefetch, offload.prefetch);
  take({"--resident"}, memory.offload.resident, offload.resident);
  take({"--residency"}, memory.offload.residency, offload.residency);
  take({"--pin"}, memory.offload.pin, offload.pin);
  return memory;
}

void check_products(const PipelineOptions& options) {
  if (!multiplies_codes(options.memory)) return;
  for (const auto& device : devices_here(options))
    if (const auto gpu = gpu_named(device))
      require(multiplies_int8(gpu->architecture), no_products_of_codes(device, gpu->architecture));
}

MemoryChoice choose_memory(const PresetFlags& flags, const PipelineOptions& options) {
  check_products(options);
  if (flags.name.empty()) return {.memory = placed_by_device(flags, options)};
  const auto [device, gpu] = smallest_gpu(options);
  const auto* const preset = preset_of(flags, device, gpu);
  if (!preset) return {.memory = options.memory};
  return {with_preset(*preset, options.memory, flags.given),
          text_of("preset ", preset->name, ": ", preset->why)};
}

}  // namespace braid
