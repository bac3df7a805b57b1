#include "pipeline/families/family.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "base/request_error.h"
#include "models/kinds/adapted_model.h"
#include "pipeline/sampling/named_sampling.h"

namespace braid {
namespace {

// Samplers that take logarithms or go between levels need levels that fall to 0, and so do named
// schedules. A line of dynamic shifts that falls below 0 leads to others.
void check_levels(const Schedule& schedule, const Sampling& s, std::int64_t image_tokens) {
  const auto sampler = s.sampler.value_or(Sampler::kEuler);
  const auto named = s.schedule.value_or(SigmaSchedule::kModel);
  const bool is_named = named != SigmaSchedule::kModel;
  if (!is_named && (sampler == Sampler::kEuler || sampler == Sampler::kLcm)) return;
  for (std::size_t i = 1; i < schedule.sigmas.size(); ++i)
    require_field(
        is_named ? "schedule" : "sampler", schedule.sigmas[i] < schedule.sigmas[i - 1], "the ",
        is_named ? "schedule " : "sampler ",
        is_named ? sampling_name(kSigmaSchedules, named) : sampling_name(kSamplers, sampler),
        " needs noise levels that fall, but the scheduler's options lead to ", schedule.sigmas[i],
        " after ", schedule.sigmas[i - 1], " for ", image_tokens, " image tokens");
}

}  // namespace

std::size_t Family::denoiser_for(const StepInfo& step) const {
  const auto all = description_.schedule.num_train_timesteps;
  const auto parts = denoisers();
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (parts[i]->serves.includes(step, int(all))) return i;
  throw Error(text_of("no denoiser of a ", description_.family, " model serves timestep ",
                      step.timestep, " of branch ", step.branch));
}

Family::Family(Description description) : description_(std::move(description)) {
  if (!description_.honours_flow_sigmas) description_.schedule.use_flow_sigmas = false;
  description_.limits.sampling = sampling_limits(description_.schedule);
  description_.limits.may_keep_prefix = keeps_prefix(ReferenceCache::kAuto);
  for (auto& part : description_.parts)
    if (part.role == Part::Role::kDenoiser)
      part.adapters.likeness = [name = description_.family](const AdapterFile& file) {
        return likeness_of_adapter(file, name);
      };
}

Schedule Family::schedule_as(const Sampling& sampling, int steps, PictureSize size,
                             StartsFrom start) const {
  const auto& config = description_.schedule;
  const auto shift = mu(size, steps);
  const auto whole =
      has_own_levels(sampling)
          ? schedule(steps, size, start)
          : make_grid(sampling, config,
                      {.steps = steps, .image_tokens = num_tokens(size), .mu = shift});
  check_levels(whole, sampling, num_tokens(size));
  return sampling.sampler == Sampler::kErSde
             ? begun_below_one(whole, shifted_by(config, sampling.shift), shift)
             : whole;
}

const Part& Family::part(Part::Role role) const {
  const auto& parts = description_.parts;
  const auto it =
      std::find_if(parts.begin(), parts.end(), [&](const Part& p) { return p.role == role; });
  check(it != parts.end(), "a ", description_.family, " model lacks a part");
  check(std::none_of(it + 1, parts.end(), [&](const Part& p) { return p.role == role; }), "a ",
        description_.family, " model has several parts like ", it->label);
  return *it;
}

std::vector<const Part*> Family::parts(Part::Role role) const {
  std::vector<const Part*> found;
  for (const auto& part : description_.parts)
    if (part.role == role) found.push_back(&part);
  return found;
}

Tensor Family::draw(Generators generators, PictureSize size, at::ScalarType dtype) const {
  const auto drawn = description_.noise_in_float ? at::kFloat : dtype;
  return pack(draw_noise(generators, latent_shape(size), drawn)).to(dtype);
}

// Tokens are what most of the reference's pipelines step.
Tensor Family::draw_for_step(Generators generators, PictureSize size,
                             const DenoiserInput& in) const {
  return draw_noise(generators, {num_tokens(size), in.noise.x_BLC.size(2)}, at::kFloat);
}

Controls Family::load_controls(const WeightsOf&, const Attend&) const { return {}; }

ControlInput Family::control(const DenoiserInput&, int, std::optional<int>, double) const {
  throw Error(text_of("a ", description_.family, " model takes no ControlNets"));
}

EmbedPicture Family::load_picture_embedder(const WeightsOf&) const { return {}; }

Condition Family::behind_prompt(const Condition& embedded, const Prompt&,
                                const EmbeddedPictures&) const {
  return embedded;
}

Tokens Family::reference(const Tensor&, int) const {
  throw Error(text_of("a ", description_.family, " model looks at no references"));
}

DenoiserInput Family::references_alone(const std::vector<Tokens>&) const {
  throw Error(text_of("a ", description_.family, " model sees references in every step"));
}

bool is_denoiser(const FamilyEntry& family, const std::string& folder) {
  const auto& folders = family.denoisers;
  return std::find(folders.begin(), folders.end(), folder) != folders.end();
}

std::vector<std::string> denoiser_folders() {
  std::set<std::string> folders;
  for (const auto& entry : known_families())
    folders.insert(entry.denoisers.begin(), entry.denoisers.end());
  return {folders.begin(), folders.end()};
}

std::shared_ptr<const Family> open_family(const ModelFiles& files) {
  auto family = files.family->open(files);
  auto wider = family->widened_by(files.adapters);
  return wider ? wider : family;
}

std::shared_ptr<const Family> named_family(const std::string& name) {
  for (const auto& entry : known_families())
    if (std::find(entry.published.begin(), entry.published.end(), name) != entry.published.end())
      return entry.named(name);
  return nullptr;
}

std::string list_of_named_models() {
  std::vector<std::string> names;
  for (const auto& entry : known_families())
    names.insert(names.end(), entry.published.begin(), entry.published.end());
  std::string list;
  for (std::size_t i = 0; i < names.size(); ++i)
    list += (i == 0 ? "" : i + 1 < names.size() ? ", " : " or ") + names[i];
  return list;
}

}  // namespace braid
