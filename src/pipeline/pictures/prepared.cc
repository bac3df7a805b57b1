#include "pipeline/pictures/prepared.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "image/blur.h"
#include "image/over_white.h"
#include "image/resize.h"
#include "pipeline/request/check_pictures.h"

namespace braid {
namespace {

// Scales to 0 .. 1, in the same operations as the reference: the last bits matter.
Tensor unit_13HW(const Pixels& picture) {
  const auto bytes = at::from_blob(const_cast<std::uint8_t*>(picture.rgb.data()),
                                   {1, picture.height, picture.width, 3}, at::kByte);
  return (bytes.to(at::kFloat) / 255).permute({0, 3, 1, 2}).contiguous();
}

Tensor signed_13HW(const Pixels& picture) { return 2 * unit_13HW(picture) - 1; }

// The picture's colours as they are, and its alpha; opaque if it has none.
Tensor signed_14HW(const Pixels& picture) {
  auto alpha = picture.alpha;
  alpha.resize(picture.rgb.size() / 3, 255);
  const auto bytes = at::from_blob(alpha.data(), {1, 1, picture.height, picture.width}, at::kByte);
  return at::cat({signed_13HW(picture), 2 * (bytes.to(at::kFloat) / 255) - 1}, 1);
}

// White from 0.5 on.
Tensor binary_11HW(const Pixels& picture) {
  const auto levels = at::tensor(luma(picture), at::kFloat) / 255;
  return levels.view({1, 1, picture.height, picture.width}).ge(0.5).to(at::kFloat);
}

std::string words_of(int width, int height) { return text_of(width, "x", height); }

void tell_of_change(const std::string& name, const Pixels& from, const Pixels& to,
                    const Warn& warn) {
  if ((from.width == to.width && from.height == to.height) || !warn) return;
  warn(text_of("the ", name, " is resized from ", words_of(from.width, from.height), " to ",
               words_of(to.width, to.height), " pixels"));
}

// A crop around a black mask is refused: there would be nothing to cut out.
void warn_of_nothing_drawn(const Pixels& mask, const Tensor& drawn_11HW, const Warn& warn) {
  if (!warn || drawn_11HW.any().item<bool>()) return;
  warn(text_of(is_black(mask)
                   ? "the mask is black"
                   : "the mask, as it is blurred and resized, is nowhere as bright as 128",
               ": nothing of the picture is redrawn"));
}

}  // namespace

Picture PutBack::operator()(Picture drawn) const {
  auto whole =
      braid::put_back({drawn.width, drawn.height, std::move(drawn.rgb)}, region, picture, mask);
  drawn.width = whole.width;
  drawn.height = whole.height;
  drawn.rgb = std::move(whole.rgb);
  return drawn;
}

PreparedPictures prepare_pictures(const PicturesIn& in, const Settings& settings,
                                  const PicturesTaken& taken, const Warn& warn) {
  PreparedPictures out;
  const auto size = settings.size(), shape = settings.crop_shape;
  std::optional<Region> region;
  const auto resize = [&](const char* name, const Pixels& picture) {
    auto fitted = resized(picture, size.width, size.height, Resampling::kLanczos);
    tell_of_change(name, picture, fitted, warn);
    return fitted;
  };
  const auto fit = [&](const char* name, const Pixels& picture) {
    return region ? filled(picture, *region, size.width, size.height) : resize(name, picture);
  };
  if (in.mask) {
    auto mask = blurred(*in.mask, float(in.mask_blur));
    if (in.padding_crop) region = region_to_draw(mask, shape.width, shape.height, *in.padding_crop);
    out.mask_11HW = binary_11HW(fit("mask", mask));
    warn_of_nothing_drawn(*in.mask, out.mask_11HW, warn);
    if (region)
      out.put_back = PutBack{.region = *region, .picture = *in.init, .mask = std::move(mask)};
  }
  if (in.init) {
    const auto most = taken.most_init_pixels;
    const bool is_shrunk = !region && most > 0 && std::int64_t(size.width) * size.height <= most;
    out.init_13HW =
        signed_13HW(fit("initial picture", is_shrunk ? with_at_most(*in.init, most) : *in.init));
  }
  if (taken.nets_follow != PicturesTaken::NetsFollow::kMasked)
    for (const auto& control : in.controls)
      out.controls_13HW.push_back(signed_13HW(resize("control picture", control.picture)));
  for (const auto& given : in.references) {
    const auto reference = taken.channels == 4 ? given : over_white(given);
    const auto fitted = fitted_reference(reference, in.references.size(), taken, size);
    const auto for_text = taken.fit_for_text ? taken.fit_for_text(reference) : fitted;
    out.references_13HW.push_back(signed_13HW(over_white(for_text)));
    out.references_1CHW.push_back(taken.channels == 4 ? signed_14HW(fitted) : signed_13HW(fitted));
    tell_of_change("reference " + std::to_string(out.references_13HW.size()), given, fitted, warn);
  }
  return out;
}

}  // namespace braid
