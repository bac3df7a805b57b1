#include "pipeline/families/qwen_image/describe.h"

#include "models/flux/sharding.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"
#include "pipeline/families/areas.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/qwen_image/controlnets.h"

namespace braid {
namespace {

// The plain pipeline reads no more tokens of a prompt; the others read all, and their pictures'.
constexpr int kMostPromptTokens = 1024, kMostEditTokens = 4096;
constexpr int kMostEditReferences = 10;  // more than Edit-Plus was reportedly trained with

// The pipelines fix these: what the autoencoder encodes of a reference, and what Edit-Plus's text
// encoder does.
constexpr AreaAtRatio kEncodedArea{.side = 1024, .multiple = kReferenceMultiple},
    kReadArea{.side = 384, .multiple = kReferenceMultiple};

Part text_part(const QwenImageConfigs& c) {
  return c.kind == QwenImageKind::kPlain ? causal_lm_part(c.text.text, {-1})
                                         : qwen25_vl_part(c.text);
}

std::vector<Part> parts_of(const QwenImageConfigs& c) {
  const auto sharding = [=](const Sharing& s) {
    return flux_sharding(blocks_of(c.qwen), s.ranks, s.modulation);
  };
  const Part qwen{.role = Part::Role::kDenoiser,
                  .folder = "transformer",
                  .label = "the transformer",
                  .class_name = "QwenImageTransformer2DModel",
                  .num_heads = c.qwen.num_heads,
                  .lists = {"double_blocks"},
                  .names = qwen_image_names,
                  .sharding = sharding,
                  .adapters = qwen_image_adapter_names(),
                  .make = [=](const Weights& w) { (void)QwenImage(c.qwen, w); }};
  std::vector<Part> parts = {text_part(c), qwen, autoencoder_part(c.vae)};
  for (auto& net : qwen_image_controlnet_parts(c.controlnets)) parts.push_back(std::move(net));
  return parts;
}

DenoiserShape shape_of(const QwenImageConfigs& c) {
  auto shape = qwen_image_shape(c.qwen);
  shape.residuals = num_residuals(c.controlnets);
  return shape;
}

// A ControlNet reads the kind of a picture from it.
PicturesTaken pictures_of(const QwenImageConfigs& c) {
  const auto kind = c.kind;
  if (kind == QwenImageKind::kPlain)
    return {.init = PicturesTaken::Init::kMaybe,
            .controlnet_modes = std::vector<int>(c.controlnets.size(), 0)};
  PicturesTaken taken{
      .least_references = 1,
      .most_references = kind == QwenImageKind::kEdit ? 1 : kMostEditReferences,
      .fit_reference = [](const Pixels& picture) { return resized_to(kEncodedArea, picture); },
      .size_from = PicturesTaken::SizeFrom::kLast};
  if (kind == QwenImageKind::kEditPlus)
    taken.fit_for_text = [](const Pixels& picture) { return resized_to(kReadArea, picture); };
  return taken;
}

}  // namespace

const char* qwen_image_pipeline(QwenImageKind kind) {
  switch (kind) {
    case QwenImageKind::kPlain:
      return "QwenImagePipeline";
    case QwenImageKind::kEdit:
      return "QwenImageEditPipeline";
    case QwenImageKind::kEditPlus:
      break;
  }
  return "QwenImageEditPlusPipeline";
}

RequestDefaults qwen_image_defaults(QwenImageKind kind) {
  RequestDefaults defaults{.steps = 50, .guidance = 4};
  if (kind != QwenImageKind::kPlain) defaults.max_sequence_length = kMostEditTokens;
  return defaults;
}

// A token of the guided velocity keeps the positive branch's length.
Description describe_qwen_image(const QwenImageConfigs& c, const ScheduleConfig& schedule,
                                const RequestDefaults& defaults) {
  const bool is_plain = c.kind == QwenImageKind::kPlain;
  return {.family = is_plain                         ? "Qwen-Image"
                    : c.kind == QwenImageKind::kEdit ? "Qwen-Image-Edit"
                                                     : "Qwen-Image-Edit-Plus",
          .parts = parts_of(c),
          .shape = shape_of(c),
          .limits = {.defaults = defaults,
                     .size_multiple = int(2 * c.vae.downscale()),
                     .max_text_tokens = is_plain ? kMostPromptTokens : kMostEditTokens,
                     .guidance = GuidanceKind::kTrue,
                     .guided_channels = c.qwen.out_channels,
                     .negative_prompt = " ",
                     .pictures = pictures_of(c)},
          .schedule = schedule,
          .vae = c.vae};
}

}  // namespace braid
