#include "pipeline/families/flux/describe.h"

#include <algorithm>

#include "models/flux/model.h"
#include "models/flux/names.h"
#include "models/flux/sharding.h"
#include "pipeline/families/flux/controlnets.h"
#include "pipeline/families/parts.h"

namespace braid {
namespace {

// T5's feed-forward layer: gate, its GELU and the product; and its attention scores of all heads,
// in float32 and as weights.
std::int64_t live_in_t5(const T5Config& c, std::int64_t tokens, int ranks) {
  const auto wide = tokens * (3 * c.mlp_hidden / ranks + 2 * c.hidden);
  const auto scores = 3 * c.num_heads / ranks * tokens * tokens;
  return std::max(wide, scores);
}

std::optional<WidenedLayer> widened_input(const FluxConfigs& c) {
  if (c.stored_channels == 0) return {};
  return WidenedLayer{.layer = kFluxInput, .stored_inputs = c.stored_channels};
}

// Tools that look at pictures add inputs to those of the latents.
AdapterNames adapter_names(const FluxConfig& c) {
  auto names = flux_adapter_names();
  names.grown = {.layer = kFluxInput, .inputs = c.out_channels};
  return names;
}

std::vector<Part> parts_of(const FluxConfigs& c) {
  const Part clip{.role = Part::Role::kText,
                  .folder = "text_encoder",
                  .label = "CLIP",
                  .num_heads = c.clip.num_heads,
                  .lists = {"encoder.layers"},
                  .is_large = false,
                  .names = clip_names,
                  .sharding = [=](SharedModulation) { return clip_sharding(c.clip); },
                  .adapters = clip_adapter_names(),
                  .make = [=](const Weights& w) { (void)Clip(c.clip, w); },
                  .live = [](std::int64_t, int) { return std::int64_t(0); }};  // far below T5's
  const Part t5{
      .role = Part::Role::kText,
      .folder = "text_encoder_2",
      .label = "T5",
      .num_heads = c.t5.num_heads,
      .lists = {"encoder.block"},
      .names = [](const Checkpoint&) { return t5_names(); },
      .sharding = [=](SharedModulation) { return t5_sharding(c.t5); },
      .adapters = t5_adapter_names(),
      .make = [=](const Weights& w) { (void)T5(c.t5, w); },
      .live = [=](std::int64_t tokens, int ranks) { return live_in_t5(c.t5, tokens, ranks); }};
  auto flux = transformer_part("FluxTransformer2DModel", c.flux.num_heads);
  flux.lists = {"double_blocks", "single_blocks"};
  flux.names = flux_names;
  flux.sharding = [=](SharedModulation modulation) { return flux_sharding(c.flux, modulation); };
  flux.widened = widened_input(c);
  flux.adapters = adapter_names(c.flux);
  flux.make = [=](const Weights& w) { (void)Flux(c.flux, w); };
  std::vector<Part> parts = {clip, t5, flux, autoencoder_part(c.vae)};
  for (auto& net : controlnet_parts(c.controlnets)) parts.push_back(std::move(net));
  if (c.redux)
    for (auto& part : flux_redux_parts(*c.redux)) parts.push_back(std::move(part));
  return parts;
}

DenoiserShape shape_of(const FluxConfigs& c) {
  auto shape = flux_shape(c.flux);
  if (!c.controlnets.empty()) shape.residuals = num_residuals(c.controlnets, c.flux.num_double);
  return shape;
}

// The reference has true guidance for two of the kinds.
GuidanceKind guidance_of(FluxKind kind) {
  const bool has_true = kind == FluxKind::kPlain || kind == FluxKind::kKontext;
  return has_true ? GuidanceKind::kEmbeddedOrTrue : GuidanceKind::kEmbedded;
}

// A net may have an input for guidance where the transformer has none.
bool embeds_guidance(const FluxConfigs& c) {
  return c.flux.guidance_embeds || std::ranges::any_of(c.controlnets, [](const auto& net) {
           return net.flux.guidance_embeds;
         });
}

// The Redux prior of the reference always reads so many tokens, whatever model draws.
constexpr int kReduxTextTokens = 512;

RequestDefaults of_schnell(const FluxConfigs& c) {
  RequestDefaults defaults{.steps = 4, .max_sequence_length = 256};
  if (c.redux) defaults.max_sequence_length = kReduxTextTokens;
  return defaults;
}

}  // namespace

Description describe_flux(const FluxConfigs& c, const ScheduleConfig& schedule,
                          const RequestDefaults& defaults) {
  auto pictures = flux_pictures(c.kind, c.vae);
  pictures.controlnet_modes = controlnet_modes(c.controlnets);
  if (see_pixels(c.controlnets)) pictures.nets_follow = PicturesTaken::NetsFollow::kPixels;
  if (c.redux) add_flux_redux(pictures, *c.redux);
  return {.family = "FLUX.1",
          .parts = parts_of(c),
          .shape = shape_of(c),
          .limits = {.defaults = defaults,
                     .size_multiple = int(2 * c.vae.downscale()),
                     .num_texts = 2,
                     .guidance = guidance_of(c.kind),
                     .embeds_guidance = embeds_guidance(c),
                     .pictures = std::move(pictures)},
          .schedule = schedule,
          .honours_flow_sigmas = true,
          .vae = c.vae,
          .pipeline_class = c.stored_channels > 0 ? flux_pipeline(c.kind) : ""};
}

RequestDefaults flux_defaults(const FluxConfigs& c, const ScheduleConfig& schedule) {
  if (c.kind == FluxKind::kFill) return {.steps = 50, .guidance = 30};
  if (c.flux.guidance_embeds || schedule.use_dynamic_shifting) return {};
  return of_schnell(c);
}

}  // namespace braid
