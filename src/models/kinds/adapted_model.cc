#include "models/kinds/adapted_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/ascii.h"
#include "base/error.h"
#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux2/model.h"
#include "models/flux2/names.h"
#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "models/joy/model.h"
#include "models/joy/names.h"
#include "models/krea2/model.h"
#include "models/krea2/names.h"
#include "models/qwen21/model.h"
#include "models/qwen21/names.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"
#include "models/zimage/model.h"
#include "models/zimage/names.h"

namespace braid {
namespace {

using Layers = std::set<std::string>;

// A family as its adapters know it: the layers that may be changed in our names, and their
// spellings. The first tables of these say all of a spelling; what they do not list is spelled as
// we do.
struct AdaptedFamily {
  const char* family;
  Layers layers;
  AdapterNames names;
  std::size_t whole_tables = 1;
};

// The layers of a network with one block of each kind: adapters may change all of them.
template <class Network, class Config>
Layers layers_of(const Config& config) {
  std::vector<SurveyedTensor> asked;
  (void)Network(config, Weights::synthetic({}).surveyed(asked));
  Layers layers;
  for (const auto& tensor : asked) {
    const bool is_of_layer = tensor.name == "weight" || tensor.name == "bias";
    layers.insert(is_of_layer ? tensor.layer : tensor.path());
  }
  return layers;
}

std::vector<AdaptedFamily> adapted_families() {
  return {
      {"FLUX.1",
       layers_of<Flux>(FluxConfig{.num_double = 1, .num_single = 1, .guidance_embeds = true}),
       flux_adapter_names()},
      {"FLUX.2",
       layers_of<Flux2>(Flux2Config{.num_double = 1, .num_single = 1, .guidance_embeds = true}),
       flux2_adapter_names()},
      {"FLUX.3", layers_of<Flux3>(Flux3Config{.num_mode = 1, .num_single = 1, .flow_map = true}),
       flux3_adapter_names()},
      {"Z-Image", layers_of<ZImage>(ZImageConfig{.num_layers = 1, .num_refiners = 1}),
       zimage_adapter_names()},
      {"JoyAI-Image-Edit", layers_of<Joy>(JoyConfig{.num_layers = 1}), joy_adapter_names()},
      {"Krea 2",
       layers_of<Krea2>(Krea2Config{.num_layers = 1, .num_tap_blocks = 1, .num_text_blocks = 1}),
       krea2_adapter_names(), 2},
      {"Qwen-Image-2.1", layers_of<Qwen21>(Qwen21Config{.num_layers = 1}), qwen21_adapter_names()},
      {"Qwen-Image",
       layers_of<QwenImage>(QwenImageConfig{.num_layers = 1, .draws = QwenImageDraws::kLayers}),
       qwen_image_adapter_names()}};
}

// Numbers of blocks and layers tell nothing.
std::string without_numbers(const std::string& underscored_name) {
  std::string name;
  for (const auto segment : segments_of(underscored_name, '_')) {
    const bool is_number =
        !segment.empty() && segment.find_first_not_of("0123456789") == segment.npos;
    (name += is_number ? "*" : segment) += '_';
  }
  name.pop_back();
  return name;
}

// The names of a family's layers in its adapters.
std::set<std::string> spellings_of(const AdaptedFamily& family) {
  constexpr std::string_view kWeight = ".weight";
  std::set<std::string> spellings;
  const auto& tables = family.names.tables;
  for (const auto& layer : family.layers)
    for (std::size_t i = 0; i < tables.size(); ++i)
      for (const auto& origin : origins_of(tables[i], layer + std::string(kWeight)))
        for (const auto& tensor : origin.tensors) {
          if (!tensor.ends_with(kWeight)) continue;
          const auto name = tensor.substr(0, tensor.size() - kWeight.size());
          if (i < family.whole_tables || name != layer)
            spellings.insert(without_numbers(underscored(name)));
        }
  return spellings;
}

using Spellings = std::map<std::string, std::set<std::string>>;

// The spellings are listed by family.
const Spellings& known_spellings() {
  static const auto kSpellings = [] {
    Spellings spellings;
    for (const auto& family : adapted_families()) spellings[family.family] = spellings_of(family);
    return spellings;
  }();
  return kSpellings;
}

bool is_of_text_encoder(std::string_view module) {
  constexpr auto kBegins = std::to_array<std::string_view>(
      {"text_encoder", "lora_te", "clip_l_", "t5_", "lora_clip", "base_model_model_text_encoder"});
  return std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return module.starts_with(begin); });
}

// A module's name without each of the prefixes that it begins with.
std::vector<std::string> names_in_denoiser(const std::string& module) {
  static const auto kPrefixes = denoiser_adapter_names({}).prefixes;
  std::vector<std::string> names;
  for (const auto& prefix : kPrefixes)
    if (module.starts_with(underscored(prefix)))
      names.push_back(without_numbers(module.substr(prefix.size())));
  return names;
}

// Models that Braid does not run, and text encoders of such.
std::string foreign_model(const std::vector<std::string>& modules) {
  struct Mark {
    const char *layers, *model;
  };
  constexpr auto kMarks = std::to_array<Mark>({
      {"joint_blocks", "a Stable Diffusion 3 model"},
      {"cross_attn", "a Wan model"},
      {"img_mlp_fc1", "a HunyuanVideo model"},
      {"lora_te2_text_model", "a Stable Diffusion XL (SDXL) model"},
      {"label_emb", "a Stable Diffusion XL (SDXL) model"},
      {"input_blocks", "a Stable Diffusion model (SD1.5, SDXL)"},
      {"down_blocks", "a Stable Diffusion model (SD1.5, SDXL)"},
      {"up_blocks", "a Stable Diffusion model (SD1.5, SDXL)"},
  });
  for (const auto& [layers, model] : kMarks)
    for (const auto& module : modules)
      if (module.find(layers) != module.npos) return model;
  return {};
}

// Z-Image's blocks are Lumina 2's.
std::string model_of(const std::vector<std::string>& families) {
  constexpr std::size_t kMostNamed = 3;
  if (families.empty() || families.size() > kMostNamed) return {};
  if (families.size() == 1 && families.front() == "Z-Image") return "a Z-Image or Lumina 2 model";
  std::string names = families.front();
  for (std::size_t i = 1; i < families.size(); ++i)
    names += (i + 1 < families.size() ? ", " : " or ") + families[i];
  return "a " + names + " model";
}

std::string model_of_modules(const std::vector<std::string>& modules) {
  const auto families = families_of_adapter(modules);
  return families.empty() ? foreign_model(modules) : model_of(families);
}

}  // namespace

std::vector<std::string> families_of_adapter(const std::vector<std::string>& modules) {
  std::map<std::string, std::size_t> matched;
  std::size_t all = 0, most = 0;
  for (const auto& module : modules) {
    if (is_of_text_encoder(module)) continue;
    ++all;
    const auto names = names_in_denoiser(module);
    for (const auto& [family, spellings] : known_spellings())
      if (std::any_of(names.begin(), names.end(),
                      [&](const std::string& name) { return spellings.contains(name); }))
        most = std::max(most, ++matched[family]);
  }
  std::vector<std::string> families;
  if (most == 0 || 3 * most < 2 * all) return families;
  for (const auto& [family, count] : matched)
    if (count == most) families.push_back(family);
  return families;
}

std::string adapted_model(const Checkpoint& file) {
  std::set<std::string> modules;
  for (const auto& [name, stored] : file.tensors()) {
    const auto [module, role] = parse_adapter_key(name);
    if (role != AdapterRole::kReplacement) modules.insert(underscored(module));
  }
  return model_of_modules({modules.begin(), modules.end()});
}

std::string likeness_of_adapter(const AdapterFile& file, const std::string& family) {
  std::vector<std::string> modules;
  for (const auto& [name, module] : file.modules())
    if (!module.find(AdapterRole::kReplacement)) modules.push_back(name);
  const auto families = families_of_adapter(modules);
  if (!known_spellings().contains(family)) return {};
  if (std::find(families.begin(), families.end(), family) != families.end()) return {};
  const auto model = model_of_modules(modules);
  return model.empty() ? "" : "it looks like a LoRA for " + model;
}

}  // namespace braid
