#include "pipeline/memory/presets.h"

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

constexpr double kGB = 1e9;
// A context of CUDA takes 0.3 to 0.6 GB. A handle of cuBLAS and one of cuBLASLt have 32 MiB each
// for either stream that computes (NVIDIA, cuBLAS library, "cublasSetWorkspace").
constexpr double kContext = 0.5 * kGB, kWorkspaces = 4 * 32 * 1024 * 1024.0;
constexpr double kLost = 0.5 * kGB - kWorkspaces;  // between an allocator's blocks

// Weights of the models that presets target: 33.6 GB in bfloat16, 16.9 GB in 8 bits. The largest
// part, the transformer, is 23.8 or 11.9 GB. A step at 1024x1024 takes 1.3 GB more, decoding about
// 3 GB.
Memory all_of_it() { return {}; }

Memory int8(Offload offload) {
  return {
      .quantize = Quantize::kInt8, .quantize_text = Quantize::kInt8, .offload = std::move(offload)};
}

// The autoencoder takes 0.2 GB: it stays, unless each part comes and goes as a whole.
Offload some_blocks(Pin pin = Pin::kAlways) {
  return {.transformer = OffloadMode::kBlock, .text = OffloadMode::kBlock, .pin = pin};
}

Offload one_part() {
  return {
      .transformer = OffloadMode::kModel, .text = OffloadMode::kModel, .vae = OffloadMode::kModel};
}

// A card sold with 16 GB offers programs at least 15 GB, in bytes.
std::vector<Preset> make_presets() {
  const auto bfloat16 = "all weights fit in bfloat16";
  const auto eight_bits = "all weights fit in 8 bits";
  const auto part = "one part at a time fits in 8 bits";
  const auto blocks = "two blocks at a time, in 8 bits";
  return {
      {"mi300x", {"gfx942"}, 45 * kGB, all_of_it(), bfloat16},
      {"rx-7900-xtx", {"gfx1100"}, 22 * kGB, int8({}), eight_bits},
      {"rx-7900-xt", {"gfx1100"}, 15 * kGB, int8(one_part()), part},
      {"rx-7800-xt", {"gfx1101", "gfx1102"}, 0, int8(some_blocks()), blocks},
      {"rx-7800-xt-lowram",
       {},
       0,
       int8(some_blocks(Pin::kOnTheFly)),
       "the same for a host of 16 GB: its memory is pinned page by page"},
      {"r9700", {"gfx1201"}, 22 * kGB, int8({}), eight_bits},
      {"rx-9070-xt", {"gfx1200", "gfx1201"}, 0, int8(some_blocks()), blocks},
      {"ryzen-ai-max", {"gfx1151"}, 45 * kGB, all_of_it(), bfloat16},
      {"ryzen-ai", {"gfx1150", "gfx1151", "gfx1152", "gfx1153"}, 0, int8(some_blocks()), blocks},
      {"rx-6800", {"gfx1030"}, 0, int8(some_blocks()), blocks},
      {"h100", {"sm_90"}, 45 * kGB, all_of_it(), bfloat16},
      {"h100-slice", {"sm_90"}, 0, int8(some_blocks()), blocks},
      {"a100", {"sm_80"}, 45 * kGB, all_of_it(), bfloat16},
      {"a100-40gb",
       {"sm_80"},
       35 * kGB,
       {.offload = one_part()},
       "one part at a time fits in bfloat16"},
      {"a100-slice", {"sm_80"}, 0, int8(some_blocks()), blocks},
      {"a6000", {"sm_86"}, 45 * kGB, all_of_it(), bfloat16},
      {"rtx-3090", {"sm_86"}, 22 * kGB, int8({}), eight_bits},
      {"rtx-3060", {"sm_86"}, 0, int8(some_blocks()), blocks},
      {"l40s", {"sm_89"}, 45 * kGB, all_of_it(), bfloat16},
      {"rtx-4090", {"sm_89"}, 22 * kGB, int8({}), eight_bits},
      {"rtx-4080", {"sm_89"}, 15 * kGB, int8(one_part()), part},
      {"rtx-4060", {"sm_89"}, 0, int8(some_blocks()), blocks},
      // those that no line above names
      {"gpu-48gb", {kAnyGpu}, 45 * kGB, all_of_it(), bfloat16},
      {"gpu-24gb", {kAnyGpu}, 22 * kGB, int8({}), eight_bits},
      {"gpu-16gb", {kAnyGpu}, 15 * kGB, int8(one_part()), part},
      {"gpu-6gb", {kAnyGpu}, 5.5 * kGB, int8(some_blocks()), blocks},
  };
}

}  // namespace

const std::vector<Preset>& known_presets() {
  static const std::vector<Preset> kKnown = make_presets();
  return kKnown;
}

const Preset* preset_for(const std::string& architecture, double bytes) {
  const auto best_for = [&](const std::string& wanted) {
    const Preset* best = nullptr;
    for (const auto& preset : known_presets())
      for (const auto& known : preset.architectures)
        if (known == wanted && preset.least_bytes <= bytes &&
            (!best || best->least_bytes < preset.least_bytes))
          best = &preset;
    return best;
  };
  const auto* const own = best_for(architecture);
  return own || architecture.empty() ? own : best_for(kAnyGpu);
}

Budget implied_budget(double bytes, std::optional<double> free_bytes) {
  const double left = std::min(bytes - kContext, free_bytes.value_or(bytes));
  return {.device = std::max<std::int64_t>(1, std::int64_t(left - kWorkspaces - kLost))};
}

const Preset& preset_named(const std::string& name) {
  std::string names;
  for (const auto& preset : known_presets()) {
    if (preset.name == name) return preset;
    names += ", " + preset.name;
  }
  throw InputError("there is no preset '" + name + "'; the presets are auto, none" + names);
}

}  // namespace braid
