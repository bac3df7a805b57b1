#include "pipeline/families/flux/kinds.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "image/resize.h"

namespace braid {
namespace {

// The portrait half of the sizes that FLUX.1 Kontext was trained on; the rest are transposes.
constexpr std::array<std::array<int, 2>, 9> kKontextSizes = {{{672, 1568},
                                                              {688, 1504},
                                                              {720, 1456},
                                                              {752, 1392},
                                                              {800, 1328},
                                                              {832, 1248},
                                                              {880, 1184},
                                                              {944, 1104},
                                                              {1024, 1024}}};

// Resizes to the size of the nearest aspect ratio, on a tie the narrower. The ratio is of sides
// rounded down to multiples, as in the reference.
Pixels in_kontext_size(const Pixels& picture, int multiple) {
  const auto multiples = [&](int side) { return std::max(1, side / multiple); };
  const double ratio = double(multiples(picture.width)) / multiples(picture.height);
  std::array<int, 2> best = {};
  double least = INFINITY;
  const auto offer = [&](int width, int height) {
    const double off = std::abs(ratio - double(width) / height);
    if (off < least) best = {width, height};
    least = std::min(least, off);
  };
  for (const auto& [narrow, wide] : kKontextSizes) offer(narrow, wide);
  for (auto it = kKontextSizes.rbegin() + 1; it != kKontextSizes.rend(); ++it)
    offer((*it)[1], (*it)[0]);
  return resized(picture, best[0] / multiple * multiple, best[1] / multiple * multiple,
                 Resampling::kLanczos);
}

}  // namespace

const char* flux_pipeline(FluxKind kind) {
  switch (kind) {
    case FluxKind::kPlain:
      return "FluxPipeline";
    case FluxKind::kKontext:
      return "FluxKontextPipeline";
    case FluxKind::kFill:
      return "FluxFillPipeline";
    case FluxKind::kControl:
      break;
  }
  return "FluxControlPipeline";
}

std::vector<std::string> flux_kin_pipelines(FluxKind kind) {
  switch (kind) {
    case FluxKind::kPlain:
      return {"FluxImg2ImgPipeline", "FluxInpaintPipeline", "FluxControlNetPipeline",
              "FluxControlNetImg2ImgPipeline", "FluxControlNetInpaintPipeline"};
    case FluxKind::kKontext:
      return {"FluxKontextInpaintPipeline"};
    case FluxKind::kFill:
      return {};
    case FluxKind::kControl:
      break;
  }
  return {"FluxControlImg2ImgPipeline", "FluxControlInpaintPipeline"};
}

PicturesTaken flux_pictures(FluxKind kind, const VaeConfig& vae) {
  const int multiple = int(2 * vae.downscale());
  switch (kind) {
    case FluxKind::kPlain:
      return {.init = PicturesTaken::Init::kMaybe, .crop_shape = PicturesTaken::CropShape::kAsked};
    case FluxKind::kKontext:
      return {.init = PicturesTaken::Init::kWithMask,
              .init_as = PicturesTaken::InitAs::kReferenceAlone,
              .strength_with_mask = 1,
              .most_references = 1,
              .fit_reference = [=](const Pixels& picture) {
                return in_kontext_size(picture, multiple);
              }};
    case FluxKind::kFill:
      return {.init = PicturesTaken::Init::kMaybe,
              .strength_with_mask = 1,
              .extra_channels = PicturesTaken::ExtraChannels::kMasked};
    case FluxKind::kControl:
      break;
  }
  return {.extra_channels = PicturesTaken::ExtraChannels::kControl};
}

// A token covers 2 x 2 latents; the mask contributes all pixels of a latent as channels.
std::int64_t flux_extra_channels(FluxKind kind, const VaeConfig& vae) {
  const auto latents = 4 * vae.latent_channels;
  const auto mask = 4 * vae.downscale() * vae.downscale();
  if (kind == FluxKind::kFill) return latents + mask;
  return kind == FluxKind::kControl ? latents : 0;
}

}  // namespace braid
