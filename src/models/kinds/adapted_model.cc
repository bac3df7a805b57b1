#include "models/kinds/adapted_model.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>

#include "base/ascii.h"
#include "base/error.h"
#include "models/flux/names.h"
#include "models/flux2/names.h"
#include "models/flux3/names.h"
#include "models/joy/names.h"
#include "models/krea2/names.h"
#include "models/qwen21/names.h"
#include "models/qwen_image/names.h"
#include "models/zimage/names.h"

namespace braid {
namespace {

using Layers = std::vector<std::string>;

// Each of `begins` with each of `ends`.
Layers all_of(const Layers& begins, const Layers& ends) {
  Layers layers;
  for (const auto& begin : begins)
    for (const auto& end : ends) layers.push_back(begin + end);
  return layers;
}

Layers joined(std::initializer_list<Layers> lists) {
  Layers all;
  for (const auto& list : lists) all.insert(all.end(), list.begin(), list.end());
  return all;
}

// A family as its adapters know it: the layers that may be changed in our names, with `*` for a
// number, and their spellings. The first tables of these say all of a spelling; what they do not
// list is spelled as we do.
struct AdaptedFamily {
  const char* family;
  Layers layers;
  AdapterNames names;
  std::size_t whole_tables = 1;
};

const Layers kFluxEnds = {"img_in", "txt_in", "final_layer.adaLN_modulation.1",
                          "final_layer.linear"};
const Layers kEmbedder = {"in_layer", "out_layer"};
const Layers kFluxSides = {"double_blocks.*.img_", "double_blocks.*.txt_"};
const Layers kFluxBlock = {"attn.qkv", "attn.proj", "mlp.0", "mlp.2"};

AdaptedFamily flux1() {
  return {"FLUX.1",
          joined({kFluxEnds, all_of({"time_in.", "guidance_in.", "vector_in."}, kEmbedder),
                  all_of(kFluxSides, kFluxBlock), all_of(kFluxSides, {"mod.lin"}),
                  all_of({"single_blocks.*."}, {"modulation.lin", "linear1", "linear2"})}),
          flux_adapter_names()};
}

AdaptedFamily flux2() {
  return {"FLUX.2",
          joined({kFluxEnds,
                  all_of({"time_in.", "guidance_in."}, kEmbedder),
                  all_of(kFluxSides, kFluxBlock),
                  all_of({"single_blocks.*."}, {"linear1", "linear2"}),
                  {"double_stream_modulation_img.lin", "double_stream_modulation_txt.lin",
                   "single_stream_modulation.lin"}}),
          flux2_adapter_names()};
}

AdaptedFamily flux3() {
  const Layers modes = {"image.", "image_cond.", "txt."};
  return {"FLUX.3",
          joined({{"emb_in.image", "emb_in.image_cond", "txt_in",
                   "final_layer.image.adaLN_modulation.1", "final_layer.image.linear"},
                  all_of({"time_in.", "ref_time_in."}, kEmbedder),
                  all_of(all_of({"early_stream_modulations.", "single_stream_modulations."}, modes),
                         {"lin"}),
                  all_of({"content_mode_blocks.image.*.", "content_mode_blocks.image_cond.*.",
                          "txt_mode_blocks.*.", "single_blocks.*."},
                         {"linear1", "attn_out", "mlp_out"})}),
          flux3_adapter_names()};
}

AdaptedFamily zimage() {
  return {"Z-Image",
          joined({{"x_embedder", "cap_embedder.norm", "cap_embedder.1", "t_embedder.mlp.0",
                   "t_embedder.mlp.2", "final_layer.linear", "final_layer.adaLN_modulation.1"},
                  all_of({"layers.*.", "noise_refiner.*.", "context_refiner.*."},
                         {"attention.qkv", "attention.out", "feed_forward.w13", "feed_forward.w2",
                          "adaLN_modulation.0"})}),
          zimage_adapter_names()};
}

AdaptedFamily joy() {
  const Layers sides = {"double_blocks.*.img_", "double_blocks.*.txt_"};
  return {"JoyAI-Image-Edit",
          joined({{"img_in", "proj_out", "condition_embedder.time_proj"},
                  all_of({"condition_embedder.text_embedder.", "condition_embedder.time_embedder."},
                         {"linear_1", "linear_2"}),
                  all_of({"double_blocks.*.attn.img_attn_", "double_blocks.*.attn.txt_attn_"},
                         {"qkv", "proj"}),
                  all_of(sides, {"mlp.net.0.proj", "mlp.net.2", "mod.modulate_table"})}),
          joy_adapter_names()};
}

AdaptedFamily krea2() {
  return {"Krea 2",
          joined({{"img_in", "time_embed.linear_1", "time_embed.linear_2", "time_mod_proj",
                   "final_layer.linear", "final_layer.scale_shift_table", "text_fusion.0.projector",
                   "text_fusion.0.txt_in.linear_1", "text_fusion.0.txt_in.linear_2",
                   "transformer_blocks.*.scale_shift_table"},
                  all_of({"transformer_blocks.*.", "text_fusion.0.layerwise_blocks.*.",
                          "text_fusion.0.refiner_blocks.*."},
                         {"attn.qg", "attn.kv", "attn.out", "mlp.gate_up", "mlp.down"})}),
          krea2_adapter_names(), 2};
}

AdaptedFamily qwen21() {
  return {"Qwen-Image-2.1",
          joined({{"img_in", "txt_in.in_layer", "txt_in.out_layer", "modulation", "norm_out.linear",
                   "proj_out", "time_text_embed.timestep_embedder.linear_1",
                   "time_text_embed.timestep_embedder.linear_2"},
                  all_of({"transformer_blocks.*."},
                         {"attn.qkv", "attn.out", "img_mlp.gate_up", "img_mlp.out"})}),
          qwen21_adapter_names()};
}

AdaptedFamily qwen_image() {
  return {"Qwen-Image",
          joined({kFluxEnds, all_of({"time_in."}, kEmbedder), all_of(kFluxSides, kFluxBlock),
                  all_of(kFluxSides, {"mod.lin"})}),
          qwen_image_adapter_names()};
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
    for (const auto& family :
         {flux1(), flux2(), flux3(), zimage(), joy(), krea2(), qwen21(), qwen_image()})
      spellings[family.family] = spellings_of(family);
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
