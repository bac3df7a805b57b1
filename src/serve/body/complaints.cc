#include "serve/body/complaints.h"

#include <algorithm>
#include <vector>

namespace braid::serve {
namespace {

using Words = std::pair<std::string_view, const char*>;

// What the engine calls the settings of "the sigmas should ...".
constexpr Words kSettings[] = {{"sigmas", "sigmas"},
                               {"base sigmas", "base_sigmas"},
                               {"shift", "shift"},
                               {"guidance scale", "guidance"},
                               {"true guidance scale", "true_cfg"},
                               {"guidance rescale", "guidance_rescale"},
                               {"norm cap of guidance", "cfg_norm_cap"},
                               {"part of the way that true guidance runs", "cfg_until"},
                               {"prompt", "prompt"},
                               {"second prompt", "prompt_2"},
                               {"negative prompt", "negative_prompt"},
                               {"second negative prompt", "negative_prompt_2"},
                               {"boxes", "boxes"},
                               {"width", "width"},
                               {"height", "height"},
                               {"resolution", "resolution"},
                               {"number of frames", "frames"},
                               {"number of layers", "layers"},
                               {"number of steps", "steps"},
                               {"number of pictures", "n"},
                               {"maximum sequence length", "max_sequence_length"},
                               {"strength", "strength"},
                               {"initial picture", "init"},
                               {"mask", "mask"},
                               {"blur of the mask", "mask_blur"},
                               {"padding around the mask", "padding_crop"},
                               {"reference", "reference"},
                               {"scale of a reference", "reference_scale"},
                               {"control picture", "control"},
                               {"scale of a ControlNet", "control_scale"}};

// How its other sentences begin.
constexpr Words kBeginnings[] = {
    {"this model has one text encoder: it takes no second prompt", "prompt_2"},
    {"this model needs a prompt that", "prompt"},
    {"this model takes no boxes", "boxes"},
    {"a second negative prompt needs", "negative_prompt_2"},
    {"this model has no negative prompt", "negative_prompt"},
    {"this model has no true guidance beside its own", "true_cfg"},
    {"this model's guidance keeps no lengths", "cfg_normalize"},
    {"both a resolution and a size were given", "resolution"},
    {"this model draws any size: it takes a width and height, not a resolution", "resolution"},
    {"this model draws layers of a picture: ask for layers", "frames"},
    {"this model draws no layers", "layers"},
    {"this model draws pictures, of one frame each", "frames"},
    {"this model starts from noise alone", "init"},
    {"this model starts from a picture only to draw a part of it anew", "init"},
    {"a mask needs", "mask"},
    {"the mask is black", "mask"},
    {"the blur of a mask needs", "mask_blur"},
    {"padding around a mask needs", "padding_crop"},
    {"a strength ", "strength"},
    {"this model looks at ", "reference"},
    {"a reference ", "reference"},
    {"references have scales", "reference_scale"},
    {"this model follows no control picture", "control"},
    {"this model follows one control picture", "control"},
    {"the ControlNet fills the initial picture in: it follows no control picture", "control"},
    {"the ControlNet fills the initial picture in", "init"},
    {"a control picture can have a scale", "control_scale"},
    {"the part of the steps in which a control picture is followed", "control_from"},
    {"ControlNet ", "control_mode"},
    {"a shift ", "shift"},
    {"a scheduler with 'shift_terminal' needs", "steps"},
    {"a request may have a schedule, sigmas or base sigmas", "schedule"},
    {"the sampler ", "sampler"},
    {"er_sde begins below", "sampler"},
    {"this model's scheduler inverts its noise levels", "schedule"}};

struct Spellings {
  std::string_view field;
  std::vector<const char*> names;  // the field's own first
};
const std::vector<Spellings>& spellings() {
  static const std::vector<Spellings> kSpellings = {
      {"init", {"init", "image", "images", "image_url", "init_images"}},
      {"reference", {"reference", "image", "images", "image_url", "init_images", "extra_images"}},
      {"size", {"size", "width", "height"}},
      {"width", {"width", "size"}},
      {"height", {"height", "size"}},
      {"n", {"n", "batch_size", "n_iter"}},
      {"steps", {"steps", "num_inference_steps"}},
      {"strength", {"strength", "denoising_strength"}},
      {"guidance", {"guidance", "guidance_scale", "distilled_cfg_scale", "cfg_scale"}},
      {"true_cfg", {"true_cfg", "true_cfg_scale", "cfg_scale"}},
      {"prompt_2", {"prompt_2", "negative_prompt_2"}},
      {"sampler", {"sampler", "sampler_name", "sampler_index"}},
      {"schedule", {"schedule", "scheduler", "sigmas", "base_sigmas"}},
      {"mask_blur", {"mask_blur", "mask_blur_x"}},
      {"padding_crop", {"padding_crop", "inpaint_full_res_padding", "inpaint_full_res"}},
      {"control_from", {"control_from", "control_to"}}};
  return kSpellings;
}

std::string setting_in(std::string_view sentence) {
  constexpr std::string_view kThe = "the ", kShould = " should ";
  const auto end = sentence.find(kShould);
  if (!sentence.starts_with(kThe) || end == sentence.npos) return "";
  const auto setting = sentence.substr(kThe.size(), end - kThe.size());
  const auto* const known = std::ranges::find(kSettings, setting, &Words::first);
  return known == std::end(kSettings) ? "" : known->second;
}

// Some sentences name the field itself: "`max_sequence_length` should ...".
std::string quoted_field(std::string_view sentence) {
  if (!sentence.starts_with('`')) return "";
  const auto end = sentence.find('`', 1);
  return end == sentence.npos ? "" : std::string(sentence.substr(1, end - 1));
}

}  // namespace

std::string field_of_complaint(std::string_view sentence) {
  for (const auto& [beginning, field] : kBeginnings)
    if (sentence.starts_with(beginning)) return field;
  auto field = setting_in(sentence);
  return field.empty() ? quoted_field(sentence) : field;
}

std::string name_as_sent(const std::string& field, const std::set<std::string>& sent) {
  if (sent.contains(field)) return field;
  const auto known = std::ranges::find(spellings(), field, &Spellings::field);
  if (known == spellings().end()) return "";
  for (const auto* const name : known->names)
    if (sent.contains(name)) return name;
  return "";
}

}  // namespace braid::serve
