#include "app/preset_flags.h"

#include "app/readable.h"
#include "base/error.h"
#include "pipeline/devices.h"
#include "pipeline/model_files.h"

namespace braid {
namespace {

// Beside the weights: a step at 1024x1024, decoding, and what the driver keeps.
constexpr double kBeside = 5e9;

bool is_any_given(const std::set<std::string>& given, std::initializer_list<const char*> flags) {
  for (const auto* const flag : flags)
    if (given.contains(flag)) return true;
  return false;
}

// Of all parts, in the dtype of their files.
double bytes_of_weights(const PipelineOptions& options) {
  const auto files = find_model(options);
  double bytes = double(files.open_transformer().num_bytes() + files.open_vae().num_bytes());
  for (const auto* const name : {"text_encoder", "text_encoder_2"})
    bytes += double(files.open_text_encoder(name).num_bytes());
  return bytes;
}

bool fits(const PipelineOptions& options, const Gpu& gpu) {
  const auto ranks = options.layout.tp * options.layout.layer_split;
  return bytes_of_weights(options) / ranks + kBeside <= double(gpu.bytes);
}

MemoryChoice placed_by_device(const PresetFlags& flags, const PipelineOptions& options) {
  const MemoryChoice asked{.memory = options.memory};
  if (is_any_given(flags.given, {"--offload", "--memory", "--host-memory"}) ||
      options.model.empty())
    return asked;
  const auto device = device_names(options).front();
  const auto gpu = gpu_named(device);
  if (!gpu) return asked;
  const auto* const preset = preset_for(gpu->architecture, double(gpu->bytes));
  if (!preset || fits(options, *gpu)) return asked;
  auto memory = with_preset(*preset, options.memory, flags.given);
  memory.quantize = options.memory.quantize;
  memory.quantize_text = options.memory.quantize_text;
  return {memory, text_of("weights are placed as preset ", preset->name, " has them: ", device,
                          " is a ", gpu->architecture, " of ", readable_bytes(double(gpu->bytes)))};
}

}  // namespace

void add_preset_flag(FlagReader& read, PresetFlags& flags) {
  read.text("--preset", "NAME", "Memory",
            "How weights are stored and where, by device: auto (what this\n"
            "one needs), none, or a name of braid info --presets. Other\n"
            "flags win. Default: where the weights do not fit a GPU, what\n"
            "auto says of --offload alone",
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

MemoryChoice choose_memory(const PresetFlags& flags, const PipelineOptions& options) {
  if (flags.name.empty()) return placed_by_device(flags, options);
  const auto device = device_names(options).front();
  const auto* const preset = preset_of(flags, device, gpu_named(device));
  if (!preset) return {.memory = options.memory};
  return {with_preset(*preset, options.memory, flags.given),
          text_of("preset ", preset->name, ": ", preset->why)};
}

}  // namespace braid
