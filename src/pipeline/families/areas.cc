#include "pipeline/families/areas.h"

#include <cmath>

#include "base/request_error.h"
#include "image/resize.h"

namespace braid {

// Python's round(): to even where it is halfway.
PictureSize size_at_ratio(PictureSize picture, const AreaAtRatio& area) {
  const double ratio = double(picture.width) / picture.height;
  const double width = std::sqrt(area.side * area.side * ratio);
  const auto rounded = [&](double pixels) {
    return int(std::nearbyint(pixels / area.multiple)) * area.multiple;
  };
  const PictureSize size{.width = rounded(width), .height = rounded(width / ratio)};
  require_field("reference", size.width > 0 && size.height > 0, "a reference of ", picture.width,
                "x", picture.height, " pixels is too narrow: with the area of ", area.side, "x",
                area.side, " it is less than ", area.multiple / 2, " pixels wide");
  return size;
}

Pixels resized_to(const AreaAtRatio& area, const Pixels& picture) {
  const auto size = size_at_ratio({.width = picture.width, .height = picture.height}, area);
  return resized(picture, size.width, size.height, Resampling::kLanczos);
}

}  // namespace braid
