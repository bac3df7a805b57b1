#include "pipeline/families/flux3/describe.h"

#include "models/flux3/model.h"
#include "models/flux3/names.h"
#include "models/flux3/sharding.h"
#include "pipeline/families/flux3/boxes.h"
#include "pipeline/families/flux3/references.h"
#include "pipeline/families/flux3/text.h"
#include "pipeline/families/parts.h"

namespace braid {
namespace {

std::vector<Part> parts_of(const Flux3Configs& c) {
  auto flux = transformer_part("Flux3Transformer2DModel", c.flux.num_heads);
  flux.lists = {"content_mode_blocks.image", "txt_mode_blocks", "content_mode_blocks.image_cond",
                "single_blocks"};
  flux.names = flux3_names;
  flux.sharding = [=](SharedModulation modulation) { return flux3_sharding(c.flux, modulation); };
  flux.adapters = flux3_adapter_names();
  flux.make = [=](const Weights& w) { (void)Flux3(c.flux, w); };
  return {causal_lm_part(c.text, flux3_states()), flux, autoencoder_part(c.vae)};
}

}  // namespace

RequestDefaults flux3_defaults(const Flux3Config& config) {
  RequestDefaults defaults{.steps = 50, .max_sequence_length = kFlux3LongestText};
  if (config.flow_map) {
    defaults.steps = 16;
    defaults.guidance = 1;
  }
  return defaults;
}

Description describe_flux3(const Flux3Configs& c, const ScheduleConfig& schedule,
                           const RequestDefaults& defaults) {
  const int multiple = int(2 * c.vae.downscale());
  return {.family = "FLUX.3",
          .parts = parts_of(c),
          .shape = flux3_shape(c.flux),
          .limits = {.defaults = defaults,
                     .size_multiple = multiple,
                     .size_rounding = SizeRounding::kNever,
                     .max_text_tokens = kFlux3LongestText,
                     .planned_text_tokens = kFlux3PlannedText,
                     .laid_out = with_boxes,
                     .guidance = c.flux.flow_map ? GuidanceKind::kNone : GuidanceKind::kTrue,
                     .guided_scales = GuidedScales::kAllButNeutral,
                     .pictures = flux3_pictures(multiple)},
          .schedule = schedule,
          .vae = c.vae,
          .noise_in_float = true};
}

}  // namespace braid
