#include "pipeline/memory/by_device.h"

#include "base/error.h"
#include "base/readable_bytes.h"
#include "pipeline/devices/devices.h"

namespace braid {
namespace {

struct NamedGpu {
  std::string device;
  std::optional<Gpu> gpu;  // empty: one of the devices is no GPU, or missing
};

NamedGpu smallest_gpu(const PipelineOptions& options, const Host& host) {
  NamedGpu smallest{.device = device_names(options).front(), .gpu = {}};
  if (!smallest.device.starts_with("cuda")) return smallest;
  const auto gpus = host.gpus();
  for (const auto& device : names_on_host(options, gpus.size(), host.launch)) {
    const auto gpu = gpu_named(device, gpus);
    if (!gpu) return {.device = device, .gpu = {}};
    if (!smallest.gpu || gpu->bytes < smallest.gpu->bytes) smallest = {device, gpu};
  }
  return smallest;
}

// The least that any of these GPUs implies: all ranks must choose the same.
Budget least_budget(const PipelineOptions& options, const Host& host) {
  Budget least;
  const auto gpus = host.gpus();
  for (const auto& device : names_on_host(options, gpus.size(), host.launch)) {
    const auto free = host.free_bytes ? host.free_bytes(device) : std::nullopt;
    const auto budget = implied_budget(double(gpu_named(device, gpus)->bytes), free);
    if (!least.is_set() || budget.device < least.device) least = budget;
  }
  return least;
}

void check_products(const PipelineOptions& options, const Host& host) {
  if (!asks_int8_products(options.memory)) return;
  const auto gpus = host.gpus();
  for (const auto& device : names_on_host(options, gpus.size(), host.launch))
    if (const auto gpu = gpu_named(device, gpus))
      require(multiplies_int8(gpu->architecture), no_products_of_codes(device, gpu->architecture));
}

}  // namespace

bool asks_int8_products(const Memory& memory) {
  return memory.quantize == Quantize::kInt8Dynamic ||
         memory.quantize_text == Quantize::kInt8Dynamic;
}

std::string no_products_of_codes(const std::string& device, const std::string& kind) {
  return text_of("int8-dynamic needs products of 8-bit integers, for which LibTorch has no kernel ",
                 "on ", device, kind.empty() ? "" : ", a ", kind,
                 ": int8 keeps the same codes and multiplies in the model's dtype");
}

const Preset* preset_of(const std::string& name, const std::string& device,
                        const std::optional<Gpu>& gpu) {
  if (name.empty() || name == "none") return nullptr;
  if (name != "auto") return &preset_named(name);
  require(gpu.has_value(), "the preset auto goes by the GPU, the device is ", device,
          ": name one of the presets instead");
  const auto* const preset = preset_for(gpu->architecture, double(gpu->bytes));
  require(preset != nullptr, "the preset auto has nothing for ", device, ", a ", gpu->architecture,
          " of ", readable_bytes(double(gpu->bytes)), ": name one of the presets instead");
  return preset;
}

Memory with_preset(const Preset& preset, const Memory& asked, const StatedMemory& stated) {
  auto memory = asked;
  visit_stated(stated, [&](bool is_stated, auto setting) {
    if (!is_stated) setting(memory) = setting(preset.memory);
  });
  return memory;
}

MemoryByDevice memory_by_device(const PipelineOptions& options, const StatedMemory& stated,
                                const Host& host) {
  check_products(options, host);
  const auto& asked = options.memory;
  if (!asked.preset.empty()) {
    const auto smallest = asked.preset == "auto" ? smallest_gpu(options, host) : NamedGpu{};
    const auto* const preset = preset_of(asked.preset, smallest.device, smallest.gpu);
    return {.memory = preset ? with_preset(*preset, asked, stated) : asked, .preset = preset};
  }
  const bool is_open = asked.fit == Fit::kAuto && !stated.transformer && !asked.budget.is_set();
  const auto gpu = is_open ? smallest_gpu(options, host).gpu : std::nullopt;
  if (!gpu || gpu->bytes == 0) return {.memory = asked};
  auto memory = asked;
  memory.budget = least_budget(options, host);
  return {.memory = std::move(memory), .is_budget_implied = true};
}

}  // namespace braid
