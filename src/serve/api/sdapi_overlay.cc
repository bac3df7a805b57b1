#include "serve/api/sdapi_overlay.h"

#include <algorithm>

#include "image/blur.h"
#include "image/mask.h"
#include "image/resize.h"

namespace braid::serve {
namespace {

// StableDiffusionProcessingImg2Img.init(): what is drawn is all there from the middle grey on.
Pixels doubled(const Pixels& mask) {
  Pixels out{.width = mask.width, .height = mask.height, .rgb = {}};
  out.rgb.reserve(mask.rgb.size());
  for (const int level : luma(mask))
    out.rgb.insert(out.rgb.end(), 3, std::uint8_t(std::min(2 * level, 255)));
  return out;
}

}  // namespace

void lay_over_kept_part(Picture& drawn, const PicturesIn& in) {
  if (!in.init || !in.mask || in.padding_crop) return;
  const auto fit = [&](const Pixels& picture) {
    return resized(picture, drawn.width, drawn.height, Resampling::kLanczos);
  };
  const auto mask = doubled(fit(blurred(*in.mask, float(in.mask_blur))));
  const Region whole{.left = 0, .top = 0, .width = drawn.width, .height = drawn.height};
  const Pixels picture{drawn.width, drawn.height, std::move(drawn.rgb)};
  drawn.rgb = put_back(picture, whole, fit(*in.init), mask).rgb;
}

}  // namespace braid::serve
