#include "serve/body/picture_options.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "image/blur.h"
#include "image/fill.h"
#include "image/mask.h"
#include "image/resize.h"
#include "serve/api_error.h"
#include "serve/body/web_ui_fields.h"

namespace braid::serve {
namespace {

constexpr int kAnyWhole = std::numeric_limits<int>::max();  // the engine has the bounds
constexpr int kMostModes = 10'000;
constexpr int kMostCovering = 16;  // times the pixels kept

// Pictures of one kind that a request brings: "to follow".
struct Brought {
  const char* what_for;
  std::size_t count;
};

// One value per picture, or one for all; empty if absent.
std::vector<double> one_each(Fields& fields, const char* name, const Brought& pictures) {
  auto values = fields.numbers(name);
  if (!values.empty() && pictures.count == 0)
    refuse(name, text_of("'", name, "' should come with pictures ", pictures.what_for,
                         ", there are none"));
  if (values.size() == 1) values.resize(pictures.count, values.front());
  if (!values.empty() && values.size() != pictures.count)
    refuse(name, text_of("'", name, "' should be one number, or one for each picture: there are ",
                         values.size(), " for ", pictures.count));
  return values;
}

constexpr const char* kControlFields[] = {"control_scale", "control_from", "control_to",
                                          "control_mode"};

void read_controls(Fields& fields, std::vector<ControlPicture>& controls) {
  const auto read = [&](const char* name, const auto& give) {
    const auto values = one_each(fields, name, {"to follow", controls.size()});
    for (std::size_t i = 0; i < values.size(); ++i) give(controls[i], values[i]);
  };
  read("control_scale", [](auto& control, double value) { control.scale = value; });
  read("control_from", [](auto& control, double value) { control.from = value; });
  read("control_to", [](auto& control, double value) { control.to = value; });
  read("control_mode", [](auto& control, double value) {
    if (value < 0 || value > kMostModes || value != int(value))
      refuse("control_mode", text_of("'control_mode' should be a whole number between 0 and ",
                                     kMostModes, ", it is ", value));
    control.mode = int(value);
  });
}

void invert(Pixels& mask) {
  for (auto& value : mask.rgb) value = std::uint8_t(255 - value);
}

// Scales the picture to cover the size and crops the middle. Refuses thin pictures: they would
// become huge.
Pixels covering(const Pixels& picture, int width, int height) {
  const auto across = std::int64_t(picture.width) * height,
             down = std::int64_t(picture.height) * width;
  if (across > down * kMostCovering || down > across * kMostCovering)
    refuse("resize_mode",
           text_of("'resize_mode' 1 would cut nearly all of a picture of ", picture.width, "x",
                   picture.height, " away to make it ", width, "x", height));
  const int scaled_width = across > down ? int(across / picture.height) : width;
  const int scaled_height = across > down ? height : int(down / picture.width);
  const auto scaled = resized(picture, scaled_width, scaled_height, Resampling::kLanczos);
  return cropped(scaled, scaled_width / 2 - width / 2, scaled_height / 2 - height / 2, width,
                 height);
}

constexpr double kSdapiBlur = 4;  // of each direction: AUTOMATIC1111's default

// The mask may be blurred here, before the request is settled.
std::optional<double> blur_in(Fields& fields, const char* field) {
  const auto blur = fields.number({field});
  if (blur && !(*blur >= 0 && *blur <= kMostBlur))
    refuse(field,
           text_of("'", field, "' should lie between 0 and ", kMostBlur, " pixels, it is ", *blur));
  return blur;
}

// `mask_blur`, or else the blurs of both directions.
double mask_blur_of(Fields& fields) {
  if (const auto both = blur_in(fields, "mask_blur")) {
    for (const auto* const name : {"mask_blur_x", "mask_blur_y"})
      if (const auto one = fields.number({name}).value_or(*both); one != *both && one != kSdapiBlur)
        fields.warn(text_of("'", name, "' ", one, " is not used: 'mask_blur' is ", *both));
    return *both;
  }
  const auto across = blur_in(fields, "mask_blur_x").value_or(0);
  if (blur_in(fields, "mask_blur_y").value_or(0) != across)
    refuse("mask_blur_x", "'mask_blur_x' and 'mask_blur_y' should be equal here");
  return across;
}

enum ResizeMode { kStretch, kCover, kFill };

// A mask is blurred at its own resolution, before it is resized.
void blur_now(PicturesIn& in) {
  *in.mask = blurred(*in.mask, float(in.mask_blur));
  in.mask_blur = 0;
}

// The web UI resizes pictures and masks alike to the size it draws, so that they may differ.
bool mask_differs_in_size(const PicturesIn& in) {
  return in.mask && in.init &&
         (in.mask->width != in.init->width || in.mask->height != in.init->height);
}

void give_mask_the_pictures_size(PicturesIn& in) {
  blur_now(in);
  *in.mask = resized(*in.mask, in.init->width, in.init->height, Resampling::kLanczos);
}

void resize_both(PicturesIn& in, int mode, int width, int height) {
  const auto fit = [&](Pixels& picture) {
    const Region whole{0, 0, picture.width, picture.height};
    picture = mode == kCover  ? covering(picture, width, height)
              : mode == kFill ? filled(picture, whole, width, height)
                              : resized(picture, width, height, Resampling::kLanczos);
  };
  fit(*in.init);
  if (!in.mask) return;
  blur_now(in);
  fit(*in.mask);
}

enum Fill { kFromAround, kOriginal };

// Uses the mask as it is after its blur, at the picture's size.
void fill_hole(PicturesIn& in) {
  const auto mask = in.padding_crop ? *in.mask : blurred(*in.mask, float(in.mask_blur));
  *in.init = filled_from_around(*in.init, mask);
}

void warn_of_resize_mode(Fields& fields, int mode, const PicturesIn& in) {
  if (mode == kStretch || in.init) return;
  fields.warn(text_of("'resize_mode' ", mode, " is not used: the pictures are ",
                      in.controls.empty() ? "references" : "followed"));
}

}  // namespace

void read_picture_options(Fields& fields, const ModelInfo& info, PicturesIn& in) {
  in.mask_blur = blur_in(fields, "mask_blur").value_or(0);
  if (const auto padding = fields.integer({"padding_crop"}, 0, kAnyWhole))
    in.padding_crop = int(*padding);
  in.reference_scales = one_each(fields, "reference_scale", {"to look at", in.references.size()});
  if (fields.word("reference_cache", {"auto", "off"}, "auto") == "off")
    in.reference_cache = ReferenceCache::kOff;
  if (const auto side = fields.integer({"resolution"}, 1, kAnyWhole)) in.resolution = int(*side);
  const bool says_how =
      std::ranges::any_of(kControlFields, [&](const char* field) { return fields.has(field); });
  if (info.pictures.net_fills_in && in.init && in.controls.empty() && says_how)
    in.controls.emplace_back();
  read_controls(fields, in.controls);
}

std::function<void(Request&)> read_sdapi_options(Fields& fields, const Request& request,
                                                 PicturesIn& in, const RequestBounds& bounds,
                                                 std::shared_ptr<Pixels> unfilled) {
  const auto mode = int(fields.integer({"resize_mode"}, kStretch, kFill).value_or(kStretch));
  warn_of_resize_mode(fields, mode, in);
  bool is_inverted = false;
  int fill = kOriginal;
  if (in.mask) {
    fill = int(fields.integer({"inpainting_fill"}, 0, 3).value_or(kOriginal));
    if (fill > kOriginal)
      refuse("inpainting_fill",
             "'inpainting_fill' should be 0 (the colours around) or 1 (the picture "
             "itself) here: there is no start from latent noise or nothing");
    is_inverted = is_on(fields, "inpainting_mask_invert");
    in.mask_blur = mask_blur_of(fields);
    const auto padding = fields.integer({"inpaint_full_res_padding"}, 0, kAnyWhole);
    if (is_on(fields, "inpaint_full_res")) in.padding_crop = int(padding.value_or(0));
  }
  // Otherwise the engine stretches it.
  const bool is_ours = mode != kStretch || fill == kFromAround;
  const bool may_resize = in.init && !in.padding_crop && request.width && request.height;
  if (may_resize && (is_ours || in.mask))
    require_few_pixels(*request.width, *request.height, bounds, "width");
  return [=](Request& decoded) {
    auto& pictures = decoded.pictures;
    if (is_inverted) invert(*pictures.mask);
    const bool differs = mask_differs_in_size(pictures);
    if (may_resize && (is_ours || differs))
      resize_both(pictures, mode, *decoded.width, *decoded.height);
    else if (differs)
      give_mask_the_pictures_size(pictures);
    if (fill != kFromAround || !pictures.init) return;
    *unfilled = *pictures.init;
    fill_hole(pictures);
  };
}

}  // namespace braid::serve
