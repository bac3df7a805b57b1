#include "pipeline/families/qwen_image/describe.h"

#include <array>

#include "image/resize.h"
#include "models/flux/sharding.h"
#include "models/qwen_image/model.h"
#include "models/qwen_image/names.h"
#include "pipeline/families/areas.h"
#include "pipeline/families/parts.h"
#include "pipeline/families/picture_processor.h"
#include "pipeline/families/qwen_image/controlnets.h"

namespace braid {
namespace {

// The plain pipeline reads no more tokens of a prompt; the others read all, but prompts are no
// longer for them. What their pictures add is counted by itself.
constexpr int kMostPromptTokens = 1024;
constexpr int kMostEditReferences = 10;  // more than Edit-Plus was reportedly trained with
constexpr int kUsualLayers = 4;          // the pipeline's
constexpr int kMostLayers = 20;          // more than the model's examples have

// The pipelines fix these: the areas that Layered draws, what the autoencoder encodes of a
// reference, and what Edit-Plus's text encoder does.
constexpr std::array kLayeredAreas = {AreaAtRatio{.side = 640, .multiple = kReferenceMultiple},
                                      AreaAtRatio{.side = 1024, .multiple = kReferenceMultiple}};
constexpr AreaAtRatio kEncodedArea{.side = 1024, .multiple = kReferenceMultiple},
    kReadArea{.side = 384, .multiple = kReferenceMultiple};

Part text_part(const QwenImageConfigs& c) {
  return reads_pictures(c.kind) ? qwen25_vl_part(c.text) : causal_lm_part(c.text.text, {-1});
}

std::vector<Part> parts_of(const QwenImageConfigs& c) {
  const auto sharding = [=](SharedModulation modulation) {
    return flux_sharding(blocks_of(c.qwen), modulation);
  };
  auto qwen = transformer_part("QwenImageTransformer2DModel", c.qwen.num_heads);
  qwen.lists = {"double_blocks"};
  qwen.names = qwen_image_names;
  qwen.sharding = sharding;
  qwen.adapters = qwen_image_adapter_names();
  qwen.make = [=](const Weights& w) { (void)QwenImage(c.qwen, w); };
  std::vector<Part> parts = {text_part(c), qwen, autoencoder_part(c.vae)};
  for (auto& net : qwen_image_controlnet_parts(c.controlnets)) parts.push_back(std::move(net));
  return parts;
}

DenoiserShape shape_of(const QwenImageConfigs& c) {
  auto shape = qwen_image_shape(c.qwen);
  shape.residuals = num_residuals(c.controlnets);
  return shape;
}

// The reference takes the size of the layers.
PicturesTaken pictures_of_layered(const QwenImageConfigs& c) {
  return {.least_references = 1,
          .most_references = 1,
          .channels = int(c.vae.image_channels),
          .cut_reference =
              [](const Pixels& picture, PictureSize size) {
                return resized(picture, size.width, size.height, Resampling::kLanczos);
              },
          .resolutions = {kLayeredAreas.begin(), kLayeredAreas.end()}};
}

// A ControlNet reads the kind of a picture from it; its pipeline takes no strength where it fills
// one in.
PicturesTaken pictures_of_plain(const QwenImageConfigs& c) {
  PicturesTaken taken{.init = PicturesTaken::Init::kMaybe,
                      .crop_shape = PicturesTaken::CropShape::kAsked,
                      .controlnet_modes = std::vector<int>(c.controlnets.size(), 0)};
  if (!fills_in(c.controlnets)) return taken;
  taken.init = PicturesTaken::Init::kWithMask;
  taken.strength_with_mask = 1;
  taken.nets_follow = PicturesTaken::NetsFollow::kMasked;
  return taken;
}

PicturesTaken pictures_of(const QwenImageConfigs& c) {
  const auto kind = c.kind;
  if (kind == QwenImageKind::kPlain) return pictures_of_plain(c);
  if (kind == QwenImageKind::kLayered) return pictures_of_layered(c);
  PicturesTaken taken{
      .least_references = 1,
      .most_references = kind == QwenImageKind::kEdit ? 1 : kMostEditReferences,
      .fit_reference = [](const Pixels& picture) { return resized_to(kEncodedArea, picture); },
      .tokens_for_text = picture_tokens(c.processor, c.text.vision.form()),
      .counted_for_text = PicturesTaken::CountedForText::kMarks,
      .longest_shape_for_text = kLongestShapeSeen,
      .size_from = PicturesTaken::SizeFrom::kLast};
  if (kind == QwenImageKind::kEditPlus)
    taken.fit_for_text = [](const Pixels& picture) { return resized_to(kReadArea, picture); };
  return taken;
}

std::string family_name(QwenImageKind kind) {
  switch (kind) {
    case QwenImageKind::kPlain:
      return "Qwen-Image";
    case QwenImageKind::kEdit:
      return "Qwen-Image-Edit";
    case QwenImageKind::kEditPlus:
      return "Qwen-Image-Edit-Plus";
    case QwenImageKind::kLayered:
      break;
  }
  return "Qwen-Image-Layered";
}

}  // namespace

const char* qwen_image_pipeline(QwenImageKind kind) {
  switch (kind) {
    case QwenImageKind::kPlain:
      return "QwenImagePipeline";
    case QwenImageKind::kEdit:
      return "QwenImageEditPipeline";
    case QwenImageKind::kEditPlus:
      return "QwenImageEditPlusPipeline";
    case QwenImageKind::kLayered:
      break;
  }
  return "QwenImageLayeredPipeline";
}

RequestDefaults qwen_image_defaults(QwenImageKind kind) {
  RequestDefaults defaults{.steps = 50, .guidance = 4};
  if (reads_pictures(kind)) defaults.max_sequence_length = kLongestTextTokens;
  if (kind == QwenImageKind::kLayered) {
    defaults.width = defaults.height = int(kLayeredAreas.front().side);
    defaults.frames = kUsualLayers + 1;
  }
  return defaults;
}

// A token of the guided velocity keeps the positive branch's length; Layered's does if asked to.
// Its pipeline has the text encoder caption the reference where there is no prompt.
Description describe_qwen_image(const QwenImageConfigs& c, const ScheduleConfig& schedule,
                                const RequestDefaults& defaults) {
  const bool is_layered = c.kind == QwenImageKind::kLayered;
  FramesDrawn frames;
  if (is_layered) frames = {.most = kMostLayers + 1, .kind = FrameKind::kLayer};
  return {
      .family = family_name(c.kind),
      .parts = parts_of(c),
      .shape = shape_of(c),
      .limits = {.defaults = defaults,
                 .frames = frames,
                 .size_multiple = int(2 * c.vae.downscale()),
                 .max_text_tokens = reads_pictures(c.kind) ? kLongestTextTokens : kMostPromptTokens,
                 .planned_text_tokens = kMostPromptTokens,
                 .empty_prompt = is_layered ? EmptyPrompt::kRefused : EmptyPrompt::kDrawn,
                 .guidance = GuidanceKind::kTrue,
                 .guided_channels = c.qwen.out_channels,
                 .kept_lengths = is_layered ? KeptLengths::kIfAsked : KeptLengths::kUsually,
                 .negative_prompt = " ",
                 .pictures = pictures_of(c)},
      .schedule = schedule,
      .vae = c.vae};
}

}  // namespace braid
