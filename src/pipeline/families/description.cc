#include "pipeline/families/description.h"

namespace braid {

bool Served::includes(const StepInfo& step, int all) const {
  const auto timestep_of = [&](double noise) { return static_cast<float>(noise * all); };
  const bool is_in_range = (from <= 0 || step.timestep >= timestep_of(from)) &&
                           (to >= 1 || step.timestep < timestep_of(to));
  return is_in_range &&
         (branches == BranchSet::kAll || (branches == BranchSet::kPrompt) == (step.branch == 0));
}

std::int64_t Part::live_with(std::int64_t text, std::int64_t pictures, int ranks) const {
  return live(text + pictures, ranks) + kept_of_picture_token * pictures;
}

Quantize Part::form(const Memory& memory) const {
  if (role == Role::kDenoiser || role == Role::kControl) return memory.quantize;
  return role == Role::kText && is_large ? memory.quantize_text : Quantize::kNone;
}

std::vector<std::string> Part::dense_layers(const std::vector<std::string>& named) const {
  const bool is_reached = role == Role::kDenoiser || role == Role::kControl;
  return is_reached ? named : std::vector<std::string>();
}

LoadOptions Part::quantized(LoadOptions load, const Memory& memory) const {
  load.quantize = form(memory);
  load.keep_dense = dense_layers(memory.keep_dense);
  return load;
}

ModelInfo info_of(const Description& description) {
  const auto& limits = description.limits;
  const auto& d = limits.defaults;
  const auto& pictures = limits.pictures;
  const bool takes_init = pictures.init != PicturesTaken::Init::kNever;
  const auto& frames = limits.frames;
  const bool draws_layers = frames.kind == FrameKind::kLayer;
  ModelInfo::Layers layers;
  if (draws_layers) layers = {.drawn = d.frames - 1, .most = frames.most - 1};
  for (const auto& area : pictures.resolutions) layers.resolutions.push_back(int(area.side));
  ModelInfo::Frames in_time;
  if (!draws_layers)
    in_time = {.drawn = d.frames, .most = frames.most, .per_second = frames.per_second};
  return {.family = description.family,
          .width = d.width,
          .height = d.height,
          .steps = d.steps,
          .guidance = limits.embeds_guidance ? d.guidance : 0,
          .max_sequence_length = d.max_sequence_length,
          .sampler = d.sampling.sampler.value_or(limits.sampling.usual),
          .size_multiple = limits.size_multiple,
          .largest_side = limits.largest_side,
          .max_text_tokens = limits.max_text_tokens,
          .frames = in_time,
          .layers = layers,
          .draws_alpha = description.vae.image_channels == 4,
          .takes_boxes = bool(limits.laid_out),
          .num_texts = limits.num_texts,
          .guidance_kind = limits.guidance,
          .pictures = {
              .takes_init = takes_init,
              .takes_mask = takes_init,
              .needs_mask = pictures.extra_channels == PicturesTaken::ExtraChannels::kMasked,
              .takes_control = pictures.extra_channels == PicturesTaken::ExtraChannels::kControl,
              .init_needs_mask = pictures.init == PicturesTaken::Init::kWithMask,
              .net_fills_in = pictures.nets_follow == PicturesTaken::NetsFollow::kMasked,
              .most_references = pictures.most_references,
              .strength = pictures.strength,
              .strength_with_mask = pictures.strength_with_mask}};
}

}  // namespace braid
