#include "pipeline/families/joy/sizes.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <iterator>

#include "image/resize.h"

namespace braid {
namespace {

// Heights with their widths, in the reference's order: of two equally near sizes the first wins.
struct Widths64 {
  int height, first, last;  // and everything between, in steps of 64
};
constexpr Widths64 kSizes[] = {
    {512, 1792, 2048}, {576, 1600, 1792}, {640, 1472, 1600}, {704, 1344, 1472}, {768, 1216, 1344},
    {832, 1152, 1216}, {896, 1088, 1152}, {960, 1024, 1088}, {1024, 960, 1024}, {1088, 896, 960},
    {1152, 832, 896},  {1216, 768, 832},  {1280, 768, 768},  {1344, 704, 768},  {1408, 704, 704},
    {1472, 640, 704},  {1536, 640, 640},  {1600, 576, 640},  {1664, 576, 576},  {1728, 576, 576},
    {1792, 512, 576},  {1856, 512, 512},  {1920, 512, 512},  {1984, 512, 512},  {2048, 512, 512},
};
constexpr int kStep = 64;

}  // namespace

PictureSize joy_size(PictureSize asked) {
  const double wanted = double(asked.height) / asked.width;
  const auto distance = [&](PictureSize size) {
    return std::abs(double(size.height) / size.width - wanted);
  };
  PictureSize best{.width = kSizes[0].first, .height = kSizes[0].height};
  for (const auto& [height, first, last] : kSizes)
    for (int width = first; width <= last; width += kStep) {
      const PictureSize size{.width = width, .height = height};
      if (distance(size) < distance(best)) best = size;
    }
  return best;
}

Pixels joy_cover(const Pixels& picture, PictureSize size) {
  const double scale =
      std::max(double(size.height) / picture.height, double(size.width) / picture.width);
  const auto width = std::int64_t(std::ceil(picture.width * scale));
  const auto height = std::int64_t(std::ceil(picture.height * scale));
  return part_of_resized(picture,
                         {.whole_width = width,
                          .whole_height = height,
                          .left = (width - size.width) / 2,
                          .top = (height - size.height) / 2,
                          .width = size.width,
                          .height = size.height},
                         Resampling::kBilinear);
}

}  // namespace braid
