#include "pipeline/families/zimage/describe.h"

#include "models/zimage/model.h"
#include "models/zimage/names.h"
#include "models/zimage/sharding.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/zimage/text.h"

namespace braid {
namespace {

constexpr std::int64_t kSide = 2;  // latents per token along each side

std::vector<Part> parts_of(const ZImageConfigs& c) {
  auto zimage = transformer_part("ZImageTransformer2DModel", c.zimage.num_heads);
  zimage.lists = {"noise_refiner", "context_refiner", "layers"};
  zimage.names = zimage_names;
  zimage.sharding = [=](SharedModulation) { return zimage_sharding(c.zimage); };
  zimage.adapters = zimage_adapter_names();
  zimage.make = [=](const Weights& w) { (void)ZImage(c.zimage, w); };
  return {causal_lm_part(c.text, kZImageStates), zimage, autoencoder_part(c.vae)};
}

// The picture's positions start after the padded text's and must stay below the table's length.
int longest_text(const ZImageConfig& c) {
  const auto longest = (c.axis_lengths[0] - 2) / kZImageRun * kZImageRun;
  return int(std::min<std::int64_t>(kLongestTextTokens, longest));
}

RequestLimits limits_of(const ZImageConfigs& c, RequestDefaults defaults) {
  const int pixels = int(kSide * c.vae.downscale());
  const auto side = std::min(c.zimage.axis_lengths[1], c.zimage.axis_lengths[2]);
  const int longest = longest_text(c.zimage);
  defaults.max_sequence_length = std::min(defaults.max_sequence_length, longest);
  return {.defaults = defaults,
          .size_multiple = pixels,
          .largest_side = int(std::min<std::int64_t>(kMaxSide, side * pixels)),
          .max_text_tokens = longest,
          .guidance = GuidanceKind::kTrue,
          .guided_from = GuidedFrom::kPositive,
          .guided_way_from = kZImageTimestepScale,
          .pictures = {.init = PicturesTaken::Init::kMaybe, .strength_with_mask = 1}};
}

}  // namespace

// Defaults of ZImagePipeline, and of Z-Image-Turbo, which needs no guidance. Their files differ in
// the schedule: the distilled model's shift is 3, the other's 6.
RequestDefaults zimage_defaults(const ScheduleConfig& schedule) {
  if (schedule.shift <= 3) return {.steps = 8, .guidance = 0};
  return {.steps = 50, .guidance = 5};
}

Description describe_zimage(const ZImageConfigs& c, const ScheduleConfig& schedule,
                            const RequestDefaults& defaults) {
  return {.family = "Z-Image",
          .parts = parts_of(c),
          .shape = zimage_shape(c.zimage),
          .limits = limits_of(c, defaults),
          .schedule = schedule,
          .honours_flow_sigmas = true,
          .vae = c.vae,
          .latents_in_float = true};
}

}  // namespace braid
