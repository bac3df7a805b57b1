#include "net/enhancer/enhanced_size.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace braid::net {
namespace {

constexpr int kUsualMultiple = 32;

struct CardSize {
  WidthHeight shape, size;
};
// "wh_ratio" in the card's example.
constexpr CardSize kCard[] = {
    {{1, 1}, {2048, 2048}}, {{4, 3}, {2400, 1792}}, {{3, 2}, {2528, 1696}}, {{16, 9}, {2752, 1536}},
    {{3, 4}, {1792, 2400}}, {{2, 3}, {1696, 2528}}, {{9, 16}, {1536, 2752}}};
constexpr double kCardArea = 2048.0 * 2048.0;

int nearest(double side, int multiple) {
  return std::max(1, int(std::lround(side / multiple))) * multiple;
}

WidthHeight with_area(WidthHeight shape, double area, int multiple) {
  if (area == kCardArea)
    for (const auto& [known, size] : kCard)
      if (known.width * shape.height == known.height * shape.width) return size;
  const double height = std::sqrt(area * shape.height / shape.width);
  return {nearest(height * shape.width / shape.height, multiple), nearest(height, multiple)};
}

}  // namespace

std::optional<WidthHeight> enhanced_size(const EnhancedPrompt& enhanced, WidthHeight usual,
                                         int multiple, const std::vector<WidthHeight>& pictures) {
  if (enhanced.pixels) return enhanced.pixels;
  const double area = double(usual.width) * usual.height;
  const int step = std::lcm(multiple, kUsualMultiple);
  if (enhanced.like_picture) {
    const auto like = pictures.at(std::size_t(*enhanced.like_picture) - 1);
    const auto its = std::min(area, double(like.width) * like.height);
    return with_area(like, its, step);
  }
  if (!enhanced.shape) return {};
  return with_area(*enhanced.shape, area, step);
}

}  // namespace braid::net
