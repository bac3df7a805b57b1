#include "serve/api/sdapi_overlay.h"

#include <algorithm>
#include <cmath>

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

// The engine has put the crop back under the filled picture, faded by the mask.
void exchange_filled(Picture& drawn, const PicturesIn& in, const Pixels& unfilled) {
  if (unfilled.rgb.size() != drawn.rgb.size()) return;
  const auto levels = luma(blurred(*in.mask, float(in.mask_blur)));
  for (std::size_t i = 0; i < drawn.rgb.size(); ++i) {
    const int change = (int(unfilled.rgb[i]) - in.init->rgb[i]) * (255 - levels[i / 3]);
    const int value = drawn.rgb[i] + int(std::lround(change / 255.0));
    drawn.rgb[i] = std::uint8_t(std::clamp(value, 0, 255));
  }
}

}  // namespace

void lay_over_kept_part(Picture& drawn, const PicturesIn& in, const Pixels& unfilled) {
  if (!in.init || !in.mask) return;
  if (in.padding_crop) return exchange_filled(drawn, in, unfilled);
  const auto fit = [&](const Pixels& picture) {
    return resized(picture, drawn.width, drawn.height, Resampling::kLanczos);
  };
  const auto mask = doubled(fit(blurred(*in.mask, float(in.mask_blur))));
  const auto& kept = unfilled.rgb.empty() ? *in.init : unfilled;
  const Region whole{.left = 0, .top = 0, .width = drawn.width, .height = drawn.height};
  const Pixels picture{drawn.width, drawn.height, std::move(drawn.rgb)};
  drawn.rgb = put_back(picture, whole, fit(kept), mask).rgb;
}

}  // namespace braid::serve
