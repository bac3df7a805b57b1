#include "pipeline/pictures/prepared.h"

#include <ATen/ATen.h>

#include "base/error.h"
#include "image/resize.h"

namespace braid {
namespace {

// 0 to 1, in the steps in which the reference gets there: the last bits decide.
Tensor unit_13HW(const Pixels& picture) {
  const auto bytes = at::from_blob(const_cast<std::uint8_t*>(picture.rgb.data()),
                                   {1, picture.height, picture.width, 3}, at::kByte);
  return (bytes.to(at::kFloat) / 255).permute({0, 3, 1, 2}).contiguous();
}

Tensor signed_13HW(const Pixels& picture) { return 2 * unit_13HW(picture) - 1; }

// The luma of ITU-R 601 in 16 bits, as Pillow has it; white from one half on.
Tensor binary_11HW(const Pixels& picture) {
  Pixels grey = picture;
  for (std::size_t i = 0; i < grey.rgb.size(); i += 3) {
    auto* const p = &grey.rgb[i];
    p[0] = std::uint8_t((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
  }
  return unit_13HW(grey).narrow(1, 0, 1).ge(0.5).to(at::kFloat);
}

std::string words_of(int width, int height) { return text_of(width, "x", height); }

void tell_of_change(const std::string& name, const Pixels& from, const Pixels& to,
                    const Warn& warn) {
  if ((from.width == to.width && from.height == to.height) || !warn) return;
  warn(text_of("the ", name, " is brought from ", words_of(from.width, from.height), " to ",
               words_of(to.width, to.height), " pixels"));
}

}  // namespace

PreparedPictures prepare_pictures(const PicturesIn& in, PictureSize size,
                                  const PicturesTaken& taken, const Warn& warn) {
  const auto fit = [&](const char* name, const Pixels& picture) {
    auto fitted = resized(picture, size.width, size.height, Resampling::kLanczos);
    tell_of_change(name, picture, fitted, warn);
    return fitted;
  };
  PreparedPictures out;
  if (in.init) out.init_13HW = signed_13HW(fit("initial picture", *in.init));
  if (in.mask) out.mask_11HW = binary_11HW(fit("mask", *in.mask));
  for (const auto& control : in.controls)
    out.controls_13HW.push_back(signed_13HW(fit("control picture", control.picture)));
  for (std::size_t i = 0; i < in.references.size(); ++i) {
    const auto fitted = taken.fit_reference(in.references[i]);
    tell_of_change("reference " + std::to_string(i + 1), in.references[i], fitted, warn);
    out.references_13HW.push_back(signed_13HW(fitted));
  }
  return out;
}

}  // namespace braid
