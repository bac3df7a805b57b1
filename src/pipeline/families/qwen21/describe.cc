#include "pipeline/families/qwen21/describe.h"

#include "models/qwen21/model.h"
#include "models/qwen21/names.h"
#include "models/qwen21/sharding.h"
#include "pipeline/families/areas.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/picture_processor.h"

namespace braid {
namespace {

constexpr int kUsualQwen21Tokens = 4096;
constexpr int kMostQwen21References = 10;  // as the model was reportedly trained
// The pipeline fixes these: a latent is 16 pixels wide, the text encoder takes 2 x 2 as a token.
constexpr AreaAtRatio kReferenceArea{.side = 1024, .multiple = 32};

std::vector<Part> parts_of(const Qwen21Configs& c) {
  auto qwen = transformer_part("QwenImage21Transformer2DModel", c.qwen.num_heads);
  qwen.lists = {"transformer_blocks"};
  qwen.names = qwen21_names;
  qwen.sharding = [=](SharedModulation modulation) { return qwen21_sharding(c.qwen, modulation); };
  qwen.adapters = qwen21_adapter_names();
  qwen.make = [=](const Weights& w) { (void)Qwen21(c.qwen, w); };
  return {qwen3_vl_part(c.text), qwen, autoencoder_part(c.vae)};
}

}  // namespace

RequestDefaults qwen21_defaults() {
  return {.steps = 40, .guidance = 1, .max_sequence_length = kLongestTextTokens};
}

Pixels fit_qwen21_reference(const Pixels& picture) { return resized_to(kReferenceArea, picture); }

Description describe_qwen21(const Qwen21Configs& c, const ScheduleConfig& schedule,
                            const RequestDefaults& defaults) {
  return {
      .family = "Qwen-Image-2.1",
      .parts = parts_of(c),
      .shape = qwen21_shape(c.qwen),
      .limits = {.defaults = defaults,
                 .size_multiple = int(2 * c.vae.downscale()),
                 .max_text_tokens = kLongestTextTokens,
                 .planned_text_tokens = kUsualQwen21Tokens,
                 .guidance = GuidanceKind::kTrue,
                 .pictures = {.most_references = kMostQwen21References,
                              .channels = int(c.vae.image_channels),
                              .fit_reference = fit_qwen21_reference,
                              .tokens_for_text = picture_tokens(c.processor, c.text.vision.form()),
                              .longest_shape_for_text = kLongestShapeSeen,
                              .size_from = PicturesTaken::SizeFrom::kLast}},
      .schedule = schedule,
      .vae = c.vae};
}

}  // namespace braid
