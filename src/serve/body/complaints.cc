#include "serve/body/complaints.h"

#include <algorithm>
#include <vector>

#include "base/request_error.h"

namespace braid::serve {
namespace {

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

// Sentences about what is read as a file name it as they would a file: "`boxes`: box 1 has ...".
std::string quoted_field(std::string_view sentence) {
  if (!sentence.starts_with('`')) return "";
  const auto end = sentence.find('`', 1);
  return end == sentence.npos ? "" : std::string(sentence.substr(1, end - 1));
}

}  // namespace

std::string field_of(const InputError& error) {
  const auto* const told = dynamic_cast<const RequestError*>(&error);
  return told ? told->field() : quoted_field(error.what());
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
