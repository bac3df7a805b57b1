// Which pictures a family accepts beside prompts, and how it prepares them.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "braid/inputs.h"
#include "image/mask.h"
#include "pipeline/families/areas.h"

namespace braid {

// How a family fits a reference that is the only one.
struct LoneReference {
  std::function<Pixels(const Pixels&)> fit;
  // Where the reference lies in what it was fitted to. What is drawn is cut to this, unless the
  // request asks for a size.
  std::function<Region(const Pixels&)> region;
};
// Pictures that a family accepts beside prompts.
struct PicturesTaken {
  enum class Init { kNever, kMaybe, kWithMask } init = Init::kNever;  // to start from
  // How the initial picture is used: as a sample from the encoder; or as its mean, which is also
  // the first reference or, with kReferenceAlone, the reference if there is no other. The mask is
  // resized to latents by nearest pixel, with kReference bilinearly.
  enum class InitAs { kSample, kReference, kReferenceAlone } init_as = InitAs::kSample;
  std::int64_t most_init_pixels = 0;  // larger are scaled down first; 0: no limit
  // With PicturesIn::padding_crop, whose aspect ratio the region takes: that of the size asked for,
  // before it is rounded, or that of the size that is drawn.
  enum class CropShape { kAsked, kDrawn } crop_shape = CropShape::kDrawn;
  double strength = 0.6, strength_with_mask = 0.6;  // unless the request sets it
  // Channels beside those of the latents: none, the control picture's latents, or the initial
  // picture's latents with the drawn region removed, then the mask. The last two are then required.
  enum class ExtraChannels { kNothing, kControl, kMasked };
  ExtraChannels extra_channels = ExtraChannels::kNothing;
  std::vector<int> controlnet_modes = {};  // by ControlNet; 0: only one kind
  // What ControlNets follow: the autoencoder's latents of control pictures, or their pixels; or the
  // latents of the initial picture with the drawn region removed, then the mask. The last start
  // from noise alone unless the strength is below 1, and keep nothing of the picture themselves.
  enum class NetsFollow { kLatents, kPixels, kMasked } nets_follow = NetsFollow::kLatents;
  int least_references = 0, most_references = 0;
  int channels = 3;  // of references: 4 with alpha, else they are laid on white
  // Where references go: tokens beside the noise's, or text after the prompt's, each with a scale.
  enum class References { kBesideNoise, kBehindPrompt } references = References::kBesideNoise;
  std::int64_t tokens_behind_prompt = 0;  // in total, however many references
  // Resize a reference to what the encoder sees, and to what the text encoder does; if the second
  // is empty, that is the same. Throw InputError for an unusable one.
  std::function<Pixels(const Pixels&)> fit_reference = {}, fit_for_text = {};
  // How many tokens the text encoder reads for a reference of the size that it is shown; empty: it
  // looks at none.
  std::function<std::int64_t(PictureSize)> tokens_for_text = {};
  // What the longest prompt counts: with kMarks a token for each reference, whose other tokens the
  // transformer sees as text beyond that length; with kWhole it sees no more, if any.
  enum class CountedForText { kWhole, kMarks } counted_for_text = CountedForText::kWhole;
  // How many times as long as wide a reference may be as the text encoder sees it; 0: any.
  int longest_shape_for_text = 0;
  std::optional<LoneReference> lone_reference = {};  // used instead for one alone
  // Used instead if references take the size of the drawn picture.
  std::function<Pixels(const Pixels&, PictureSize)> cut_reference = {};
  // Areas of what is drawn in the shape of the reference, of which PicturesIn::resolution chooses
  // one, by default the first. Empty: the area is that of a fitted reference.
  std::vector<AreaAtRatio> resolutions = {};
  // Which reference sets the size of the drawn picture, unless one is asked for.
  enum class SizeFrom { kFirst, kLast } size_from = SizeFrom::kFirst;
  // What of the encoder's distribution is used; a sample is drawn after the noise.
  enum class ReferenceLatents { kMean, kSample } reference_latents = ReferenceLatents::kMean;
  // Whether the model sees references in every step, or was trained to attend to keys and values
  // computed once, before the first.
  enum class ReferenceUse { kInEveryStep, kOnce } reference_use = ReferenceUse::kInEveryStep;
  ReferenceUse use_with(ReferenceCache cache) const {
    return cache == ReferenceCache::kAuto ? reference_use : ReferenceUse::kInEveryStep;
  }
};

}  // namespace braid
