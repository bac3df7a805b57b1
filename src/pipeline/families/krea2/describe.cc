#include "pipeline/families/krea2/describe.h"

#include "models/krea2/model.h"
#include "models/krea2/names.h"
#include "models/krea2/sharding.h"
#include "pipeline/families/parts.h"

namespace braid {
namespace {

std::vector<Part> parts_of(const Krea2Configs& c) {
  auto krea = transformer_part("Krea2Transformer2DModel", c.krea.image.num_heads);
  krea.lists = {"transformer_blocks", "text_fusion"};
  krea.names = krea2_names;
  krea.sharding = [=](SharedModulation modulation) { return krea2_sharding(c.krea, modulation); };
  krea.adapters = krea2_adapter_names();
  krea.make = [=](const Weights& w) { (void)Krea2(c.krea, w); };
  return {causal_lm_part(c.text, c.taps), krea, autoencoder_part(c.vae)};
}

}  // namespace

// These are Krea2Pipeline's, and what its documentation says of the distilled model.
RequestDefaults krea2_defaults(Krea2Kind kind) {
  if (kind == Krea2Kind::kTurbo) return {.steps = 8, .guidance = 0};
  return {.steps = 28, .guidance = 4.5};
}

Description describe_krea2(const Krea2Configs& c, const ScheduleConfig& schedule,
                           const RequestDefaults& defaults) {
  return {.family = "Krea 2",
          .parts = parts_of(c),
          .shape = krea2_shape(c.krea),
          .limits = {.defaults = defaults,
                     .size_multiple = int(c.patch * c.vae.downscale()),
                     .size_rounding = SizeRounding::kUp,
                     .max_text_tokens = kLongestTextTokens,
                     .guidance = GuidanceKind::kTrue,
                     .guided_from = GuidedFrom::kPositive},
          .schedule = schedule,
          .vae = c.vae};
}

}  // namespace braid
