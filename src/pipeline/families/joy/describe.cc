#include "pipeline/families/joy/describe.h"

#include "models/joy/model.h"
#include "models/joy/names.h"
#include "models/joy/sharding.h"
#include "pipeline/families/joy/sizes.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/picture_processor.h"

namespace braid {
namespace {

constexpr int kUsualJoyTokens = 4096;  // the default of both pipelines, which know no largest

constexpr int kMostJoyReferences = 10;  // more than Edit-Plus was reportedly trained with

std::vector<Part> parts_of(const JoyConfigs& c) {
  auto joy = transformer_part(c.kind == JoyKind::kEdit ? "JoyImageEditTransformer3DModel"
                                                       : "JoyImageEditPlusTransformer3DModel",
                              c.joy.num_heads);
  joy.lists = {"double_blocks"};
  joy.names = [](const Checkpoint&) { return Names{}; };
  joy.sharding = [=](SharedModulation modulation) { return joy_sharding(c.joy, modulation); };
  joy.adapters = joy_adapter_names();
  joy.make = [=](const Weights& w) { (void)Joy(c.joy, w); };
  return {qwen3_vl_part(c.text), joy, autoencoder_part(c.vae)};
}

PicturesTaken pictures_of(const JoyConfigs& c) {
  const auto tokens = picture_tokens(c.processor, c.text.vision.form());
  if (c.kind == JoyKind::kEdit)
    return {.most_references = 1,
            .tokens_for_text = tokens,
            .cut_reference = joy_cover,
            .reference_latents = PicturesTaken::ReferenceLatents::kSample};
  return {.most_references = kMostJoyReferences,
          .fit_reference =
              [](const Pixels& picture) {
                return joy_cover(picture,
                                 joy_size({.width = picture.width, .height = picture.height}));
              },
          .tokens_for_text = tokens,
          .size_from = PicturesTaken::SizeFrom::kLast};
}

}  // namespace

const char* joy_pipeline(JoyKind kind) {
  return kind == JoyKind::kEdit ? "JoyImageEditPipeline" : "JoyImageEditPlusPipeline";
}

RequestDefaults joy_defaults(JoyKind kind) {
  return {.steps = kind == JoyKind::kEdit ? 40 : 30,
          .guidance = 4,
          .max_sequence_length = kUsualJoyTokens};
}

Description describe_joy(const JoyConfigs& c, const ScheduleConfig& schedule,
                         const RequestDefaults& defaults) {
  RequestLimits limits{.defaults = defaults,
                       .size_multiple = int(2 * c.vae.downscale()),
                       .max_text_tokens = kLongestTextTokens,
                       .guidance = GuidanceKind::kTrue,
                       .guided_channels = c.vae.latent_channels,
                       .pictures = pictures_of(c)};
  if (c.kind == JoyKind::kEdit)
    limits.nearest_size = joy_size;
  else
    limits.negative_prompt = " ";
  return {.family = c.kind == JoyKind::kEdit ? "JoyAI-Image-Edit" : "JoyAI-Image-Edit-Plus",
          .parts = parts_of(c),
          .shape = joy_shape(c.joy),
          .limits = limits,
          .schedule = schedule,
          .honours_flow_sigmas = true,
          .vae = c.vae};
}

}  // namespace braid
