#include "pipeline/request/check_pictures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "base/request_error.h"
#include "image/blur.h"
#include "image/mask.h"
#include "image/resize.h"
#include "pipeline/request/limits.h"

namespace braid {
namespace {

using ExtraChannels = PicturesTaken::ExtraChannels;
using NetsFollow = PicturesTaken::NetsFollow;

void check_pixels(const char* field, const char* name, const Pixels& picture) {
  require_field(field, picture.width > 0 && picture.height > 0, "the ", name,
                " should have pixels, it has ", picture.width, "x", picture.height);
  const auto values = std::size_t(picture.width) * std::size_t(picture.height) * 3;
  require_field(field, picture.rgb.size() == values, "the ", name, " of ", picture.width, "x",
                picture.height, " pixels should have ", values, " values, it has ",
                picture.rgb.size());
  require_field(field, picture.channels() == 3 || 3 * picture.alpha.size() == values, "the ", name,
                " of ", picture.width, "x", picture.height, " pixels should have ", values / 3,
                " values of alpha or none, it has ", picture.alpha.size());
}

// Settings alone, without a picture, are for what a ControlNet fills in.
void check_followed(const ControlPicture& control) {
  const auto& picture = control.picture;
  require_field("control", picture.width > 0 || picture.height > 0 || !picture.rgb.empty(),
                "the ControlNet needs a control picture to follow: it fills none in");
  check_pixels("control", "control picture", picture);
}

void check_all_pixels(const PicturesIn& in, const PicturesTaken& taken) {
  if (in.init) check_pixels("init", "initial picture", *in.init);
  if (in.mask) check_pixels("mask", "mask", *in.mask);
  for (const auto& reference : in.references) check_pixels("reference", "reference", reference);
  if (taken.nets_follow != NetsFollow::kMasked)
    for (const auto& control : in.controls) check_followed(control);
}

void check_taken(const PicturesIn& in, const PicturesTaken& taken) {
  const int references = int(in.references.size());
  require_field("init", !in.init || taken.init != PicturesTaken::Init::kNever,
                "this model starts from noise alone: it takes no initial picture");
  require_field("init", !in.init || in.mask || taken.init != PicturesTaken::Init::kWithMask,
                taken.nets_follow == NetsFollow::kMasked
                    ? "the ControlNet fills the initial picture in"
                    : "this model starts from a picture only to draw a part of it anew",
                ": it needs a mask");
  require_field("reference", references == 0 || taken.most_references > 0,
                "this model looks at no references, ", references,
                references == 1 ? " was given" : " were given");
  require_field("reference", references <= taken.most_references, "this model looks at ",
                taken.most_references, taken.most_references == 1 ? " reference" : " references",
                " at most, ", references, " were given");
  const bool follows =
      taken.extra_channels == ExtraChannels::kControl || !taken.controlnet_modes.empty();
  require_field("control", in.controls.empty() || follows,
                "this model follows no control picture: use one ",
                "that was trained to, or a ControlNet");
}

void check_needed(const PicturesIn& in, const PicturesTaken& taken) {
  require_field("control", !in.controls.empty() || taken.extra_channels != ExtraChannels::kControl,
                "this model needs a control picture to follow");
  require_field("init", (in.init && in.mask) || taken.extra_channels != ExtraChannels::kMasked,
                "this model fills pictures in: it needs an initial picture and a mask");
  require_field("reference", int(in.references.size()) >= taken.least_references, "this model ",
                taken.resolutions.empty() ? "edits pictures" : "takes a picture apart",
                ": it needs ", taken.least_references == 1 ? "a reference" : "more references");
}

void check_resolution(const PicturesIn& in, const PicturesTaken& taken) {
  if (!in.resolution) return;
  require_field("resolution", !taken.resolutions.empty(),
                "this model draws any size: it takes a width and height, not a resolution");
  std::string choices;
  for (const auto& area : taken.resolutions) {
    if (area.side == *in.resolution) return;
    choices += (choices.empty() ? "" : " or ") + std::to_string(int(area.side));
  }
  throw RequestError("resolution",
                     text_of("the resolution should be ", choices, ", it is ", *in.resolution));
}

void check_references(const PicturesIn& in, const PicturesTaken& taken) {
  const auto& scales = in.reference_scales;
  if (scales.empty()) return;
  require_field("reference_scale", taken.references == PicturesTaken::References::kBehindPrompt,
                "references have scales with Redux only");
  require_field("reference_scale", scales.size() == in.references.size(), "there are ",
                scales.size(), " scales for ", in.references.size(), " references");
  for (const double scale : scales)
    checked_number("reference_scale", "scale of a reference", scale);
}

void check_control_of_model(const std::vector<ControlPicture>& controls) {
  const auto& c = controls.front();
  require_field("control", controls.size() == 1, "this model follows one control picture, ",
                controls.size(), " were given");
  require_field(
      "control_scale", c.scale == 1 && c.from == 0 && c.to == 1 && !c.mode,
      "a control picture can have a scale, a part of the steps or a mode only with a ControlNet");
}

// One mode is given per net: nets that follow a single kind take 0.
void check_mode(const ControlPicture& c, std::size_t net, int modes) {
  require_field("control_mode", modes > 0 || c.mode.value_or(0) == 0, "ControlNet ", net + 1,
                " follows one kind of pictures: its mode is 0, not ", c.mode.value_or(0));
  require_field("control_mode", modes == 0 || (c.mode && *c.mode >= 0 && *c.mode < modes),
                "ControlNet ", net + 1, " follows ", modes,
                " kinds of pictures: its mode should lie between 0 and ", modes - 1,
                c.mode ? text_of(", it is ", *c.mode) : ", none is given");
}

void check_controls_of_nets(const std::vector<ControlPicture>& controls,
                            const std::vector<int>& modes) {
  require_field("control", controls.size() == modes.size() || modes.size() == 1, "there are ",
                modes.size(), " ControlNets, each needs a control picture, ", controls.size(),
                controls.size() == 1 ? " was given" : " were given");
  for (std::size_t i = 0; i < controls.size(); ++i) {
    const auto& c = controls[i];
    const auto net = net_of_control(i, modes.size());
    checked_number("control_scale", "scale of a ControlNet", c.scale);
    require_field(
        "control_from", c.from >= 0 && c.from <= c.to && c.to <= 1,
        "the part of the steps in which a control ",
        "picture is followed should lie between 0 and 1 and end no earlier than it begins, it is ",
        "from ", c.from, " to ", c.to);
    check_mode(c, net, modes[net]);
  }
}

void check_filled(const PicturesIn& in) {
  require_field("control", in.controls.size() == 1 && in.controls.front().picture.rgb.empty(),
                "the ControlNet fills the initial picture in: it follows no control picture");
  require_field("init", in.init.has_value(),
                "the ControlNet fills the initial picture in: there is none");
}

void check_controls(const PicturesIn& in, const PicturesTaken& taken) {
  if (in.controls.empty()) return;
  if (taken.extra_channels == ExtraChannels::kControl) return check_control_of_model(in.controls);
  if (taken.nets_follow == NetsFollow::kMasked) check_filled(in);
  check_controls_of_nets(in.controls, taken.controlnet_modes);
}

void check_mask(const PicturesIn& in) {
  require_field("mask_blur", in.mask || in.mask_blur == 0, "the blur of a mask needs a mask");
  require_field("mask_blur", in.mask_blur >= 0 && in.mask_blur <= kMostBlur,
                "the blur of the mask should lie between 0 and ", kMostBlur, " pixels, it is ",
                in.mask_blur);
  require_field("padding_crop", in.mask || !in.padding_crop, "padding around a mask needs a mask");
  if (!in.mask) return;
  require_field("mask", in.mask->width == in.init->width && in.mask->height == in.init->height,
                "the mask should have the size of the initial picture, ", in.init->width, "x",
                in.init->height, ", it has ", in.mask->width, "x", in.mask->height);
  if (!in.padding_crop) return;
  require_field("padding_crop", *in.padding_crop >= 0 && *in.padding_crop <= kMaxSide,
                "the padding around the mask should lie between 0 and ", kMaxSide,
                " pixels, it is ", *in.padding_crop);
  require_field("mask", !is_black(*in.mask),
                "the mask is black: nothing of the picture would be redrawn");
}

}  // namespace

Pixels fitted_reference(const Pixels& reference, std::size_t count, const PicturesTaken& taken,
                        PictureSize size) {
  if (taken.cut_reference) return taken.cut_reference(reference, size);
  return count == 1 && taken.lone_reference ? taken.lone_reference->fit(reference)
                                            : taken.fit_reference(reference);
}

namespace {

// A picture that stands for its size.
Pixels without_pixels(const Pixels& picture) {
  return {.width = picture.width, .height = picture.height, .rgb = {}};
}

// What a reference becomes, of which only the size is asked for.
Sides fitted_sides(const Pixels& reference, std::size_t count, const PicturesTaken& taken,
                   PictureSize size) {
  const auto fitted = fitted_reference(without_pixels(reference), count, taken, size);
  return {.width = fitted.width, .height = fitted.height};
}

// What the encoders would refuse when the model is loaded. References that take the size of what is
// drawn, or that become text of one length, fit always.
void check_fit(const PicturesIn& in, const PicturesTaken& taken) {
  if (taken.cut_reference || !taken.fit_reference) return;
  for (const auto& reference : in.references) {
    auto seen = fitted_sides(reference, in.references.size(), taken, {});
    if (taken.fit_for_text) {
      const auto for_text = taken.fit_for_text(without_pixels(reference));
      seen = {.width = for_text.width, .height = for_text.height};
    }
    const auto [shorter, longer] = std::minmax(seen.width, seen.height);
    const std::int64_t longest = taken.longest_shape_for_text;
    require_field("reference", longest == 0 || longer <= longest * shorter, "a reference of ",
                  reference.width, "x", reference.height,
                  " pixels is too narrow: the text encoder would be shown ", seen.width, "x",
                  seen.height, ", and its longer side should be at most ", longest,
                  " times the shorter");
  }
}

}  // namespace

bool starts_from_init(const PicturesIn& in, const PicturesTaken& taken) {
  const bool is_followed = taken.nets_follow == NetsFollow::kMasked;
  return in.init && !(is_followed && in.strength.value_or(taken.strength_with_mask) == 1);
}

std::optional<double> strength_of(const PicturesIn& in, const PicturesTaken& taken) {
  if (!starts_from_init(in, taken)) return {};
  return in.strength.value_or(in.mask ? taken.strength_with_mask : taken.strength);
}

std::size_t net_of_control(std::size_t control, std::size_t num_nets) {
  return num_nets == 1 ? 0 : control;
}

void check_pictures(const Request& request, const PicturesTaken& taken) {
  const auto& in = request.pictures;
  check_taken(in, taken);
  check_needed(in, taken);
  check_all_pixels(in, taken);
  check_controls(in, taken);
  check_references(in, taken);
  check_fit(in, taken);
  check_resolution(in, taken);
  require_field("mask", in.init || !in.mask, "a mask needs an initial picture");
  require_field("strength", in.init || !in.strength, "a strength needs an initial picture");
  require_field("init", !starts_from_init(in, taken) || !request.latents,
                "both initial latents and an initial picture were given: give one of them");
  check_mask(in);
  if (in.strength)
    require_field("strength", *in.strength >= 0 && *in.strength <= 1,
                  "the strength should lie between 0 and 1, it is ", *in.strength);
}

bool may_cache_references(const RequestLimits& limits) {
  return limits.may_keep_prefix ||
         limits.pictures.reference_use == PicturesTaken::ReferenceUse::kOnce;
}

void warn_of_unused(const PicturesIn& in, const RequestLimits& limits, const Warn& warn) {
  if (in.reference_cache == ReferenceCache::kOff && !may_cache_references(limits))
    warn("the reference cache is off anyway: this model keeps nothing of references");
  const auto& taken = limits.pictures;
  const auto nets = taken.controlnet_modes.size();
  const bool fill_in = taken.nets_follow == NetsFollow::kMasked;
  const bool follow = fill_in ? in.init.has_value() : !in.controls.empty();
  if (nets > 0 && !follow)
    warn(text_of(nets == 1 ? "the ControlNet is" : "the ControlNets are", " not used: there is no ",
                 fill_in ? "initial picture to fill in" : "control picture to follow"));
}

std::optional<Region> region_returned(const Request& request, const PicturesTaken& taken) {
  const auto& references = request.pictures.references;
  const bool is_alone = taken.lone_reference && references.size() == 1;
  if (!is_alone || request.width || request.height) return {};
  return taken.lone_reference->region(references.front());
}

namespace {

// The area asked for, or the first.
const AreaAtRatio& area_of(const PicturesIn& in, const PicturesTaken& taken) {
  const auto& areas = taken.resolutions;
  const auto it = std::ranges::find_if(
      areas, [&](const AreaAtRatio& area) { return in.resolution == int(area.side); });
  return it == areas.end() ? areas.front() : *it;
}

}  // namespace

PictureSize size_without_request(const PicturesIn& in, const RequestLimits& limits) {
  const int least = limits.nearest_size ? 1 : limits.size_multiple;
  const auto of = [&](Sides sides) -> PictureSize {
    const auto larger = std::max(sides.width, sides.height);
    const double scale = std::min(1.0, double(limits.largest_side) / larger);
    const auto side = [&](int pixels) { return std::max(least, int(pixels * scale)); };
    return {.width = side(sides.width), .height = side(sides.height)};
  };
  const auto& taken = limits.pictures;
  const auto sides = [](const Pixels& picture) { return Sides{picture.width, picture.height}; };
  const auto most = taken.most_init_pixels;
  const bool is_fitted = taken.init_as == PicturesTaken::InitAs::kReferenceAlone;
  if (in.init && is_fitted && taken.fit_reference) return of(fitted_sides(*in.init, 1, taken, {}));
  if (in.init) return of(most > 0 ? sides_with_at_most(sides(*in.init), most) : sides(*in.init));
  if (!in.controls.empty()) return of(sides(in.controls.front().picture));
  const bool are_tokens = taken.references == PicturesTaken::References::kBesideNoise;
  if (are_tokens && !in.references.empty()) {
    const auto& reference = taken.size_from == PicturesTaken::SizeFrom::kFirst
                                ? in.references.front()
                                : in.references.back();
    if (!taken.resolutions.empty())
      return size_at_ratio({.width = reference.width, .height = reference.height},
                           area_of(in, taken));
    return of(taken.cut_reference ? sides(reference)
                                  : fitted_sides(reference, in.references.size(), taken, {}));
  }
  return {.width = limits.defaults.width, .height = limits.defaults.height};
}

bool init_is_reference(int references, const PicturesTaken& taken) {
  using InitAs = PicturesTaken::InitAs;
  return taken.init_as == InitAs::kReference ||
         (taken.init_as == InitAs::kReferenceAlone && references == 0);
}

std::vector<PictureSize> reference_sizes(const PicturesIn& in, const PicturesTaken& taken,
                                         PictureSize size) {
  std::vector<PictureSize> sizes;
  if (in.init && init_is_reference(int(in.references.size()), taken)) sizes.push_back(size);
  if (taken.references != PicturesTaken::References::kBesideNoise) return sizes;
  for (const auto& picture : in.references) {
    const auto fitted = fitted_sides(picture, in.references.size(), taken, size);
    sizes.push_back({.width = fitted.width, .height = fitted.height});
  }
  return sizes;
}

int first_step_of(int steps, double strength) {
  const int first = skipped_steps(steps, strength);
  require_field("strength", first < steps, "a strength of ", strength, " leaves none of ", steps,
                steps == 1 ? " step" : " steps", ": the picture would be the initial one");
  return first;
}

}  // namespace braid
