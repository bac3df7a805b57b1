#include "pipeline/families/adapter_fit.h"

#include "base/error.h"
#include "pipeline/families/family.h"
#include "weights/adapters/adapted_part.h"
#include "weights/weights.h"

namespace braid {
namespace {

// Recognised by what a module's name begins with or contains.
std::string spelling_of(const AdapterFile& file) {
  const std::pair<const char*, const char*> spellings[] = {{"lora_unet_", "sd-scripts"},
                                                           {"lora_te", "sd-scripts"},
                                                           {"lora_transformer_", "OneTrainer"},
                                                           {"lycoris_", "LyCORIS"},
                                                           {".processor.", "XLabs"},
                                                           {"diffusion_model.", "ComfyUI"},
                                                           {"base_model.model.", "peft"},
                                                           {"transformer.", "diffusers"}};
  for (const auto& [part, spelling] : spellings)
    for (const auto& [name, module] : file.modules())
      if (module.name.find(part) != std::string::npos) return spelling;
  return "without a prefix";
}

std::string kind_of(const AdapterModule& module) {
  using Role = AdapterRole;
  if (const auto* const stored = module.find(Role::kUnreadable))
    return std::string(unreadable_kind(stored->entry.name));
  if (module.find(Role::kMagnitude)) return "DoRA";
  if (module.find(Role::kDown)) return "LoRA";
  if (module.find(Role::kFirstUp)) return "LoHa";
  if (module.find(Role::kLeft) || module.find(Role::kLeftUp)) return "LoKr";
  return "differences";
}

// The leading dimension of the down factor.
std::optional<std::int64_t> rank_of(const AdapterModule& module) {
  using Role = AdapterRole;
  for (const auto role : {Role::kDown, Role::kFirstDown, Role::kRightDown, Role::kLeftDown}) {
    const auto* const stored = module.find(role);
    if (stored && !stored->entry.shape.empty()) return stored->entry.shape[0];
  }
  return {};
}

AppliedAdapter whole(const AdapterFile& file) {
  return {.file = std::shared_ptr<const AdapterFile>(&file, [](auto*) {}), .scale = 1};
}

// How many of the file's tensors the part can use; 0 if one of them does not fit it.
std::size_t fitting_tensors(const AdapterFile& file, const Part& part) {
  std::vector<SurveyedTensor> asked;
  part.make(Weights::synthetic({}).surveyed(asked));
  const PartAdapters adapters(
      {.names = part.adapters, .shardings = part.sharding(SharedModulation::kYes)}, {whole(file)});
  UsedTensors used;
  try {
    for (const auto& tensor : asked) add_used(adapters.changes_by_adapter(tensor), used);
  } catch (const InputError&) {
    return 0;
  }
  return used.empty() ? 0 : used.front().size();
}

}  // namespace

AdapterSummary summary_of(const AdapterFile& file) {
  AdapterSummary summary{.spelling = spelling_of(file)};
  std::size_t tensors = 0;
  for (const auto& [name, module] : file.modules()) {
    ++summary.modules;
    summary.kinds.insert(kind_of(module));
    if (const auto rank = rank_of(module)) ++summary.ranks[*rank];
    for (const auto& [role, stored] : module.tensors) {
      ++tensors;
      summary.parameters += c10::multiply_integers(stored.entry.shape);
      summary.bytes += std::int64_t(stored.entry.size);
    }
  }
  std::size_t most = 1;
  for (const auto& entry : known_families())
    for (const auto& name : entry.published) {
      auto family = entry.named(name);
      if (auto wider = family->widened_by({whole(file)})) family = std::move(wider);
      std::size_t fitting = 0;
      for (const auto& part : family->description().parts)
        if (!part.adapters.prefixes.empty()) fitting += fitting_tensors(file, part);
      if (fitting < most) continue;
      if (fitting > most) summary.fits.clear();
      most = fitting;
      summary.fits.push_back(name);
    }
  summary.fits_all = most == tensors;
  return summary;
}

}  // namespace braid
