#include "pipeline/families/flux3/references.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/request_error.h"
#include "image/resize.h"

namespace braid {
namespace {

constexpr int kMostReferences = 10;
constexpr int kShortestCanvas = 64, kLongestCanvas = 4096;
constexpr std::int64_t kMostCanvasPixels = 4 * 1024 * 1024, kMostPixelsOfSeveral = 1024 * 1024;
constexpr double kNextScale = 0.995;
constexpr int kGrid = 16;  // of the reference's processor, whatever the autoencoder

int canvas_side(int side, int multiple) {
  return std::clamp((side + multiple - 1) / multiple * multiple, kShortestCanvas, kLongestCanvas);
}

Sides canvas_of(Sides s, int multiple) {
  return {canvas_side(s.width, multiple), canvas_side(s.height, multiple)};
}

// Counts in the reference's order: halves are rounded to even.
Sides scaled_sides(const Pixels& picture, int multiple) {
  const double pixels = double(picture.width) * picture.height;
  const int longest = std::max(picture.width, picture.height);
  double scale = std::min(
      {1.0, std::sqrt(double(kMostCanvasPixels) / pixels), double(kLongestCanvas) / longest});
  const auto scaled = [&](int side) { return std::max(1, int(std::nearbyint(side * scale))); };
  for (;; scale *= kNextScale) {
    const Sides sides{scaled(picture.width), scaled(picture.height)};
    const auto canvas = canvas_of(sides, multiple);
    if (std::int64_t(canvas.width) * canvas.height <= kMostCanvasPixels) return sides;
  }
}

Region region_in_canvas(Sides sides, int multiple) {
  const auto canvas = canvas_of(sides, multiple);
  return {.left = (canvas.width - sides.width) / 2,
          .top = (canvas.height - sides.height) / 2,
          .width = sides.width,
          .height = sides.height};
}

// Very small pictures repeat their edge, others do not.
Pixels fit_alone(const Pixels& picture, int multiple) {
  const auto sides = scaled_sides(picture, multiple);
  const auto small = resized(picture, sides.width, sides.height, Resampling::kLanczos);
  const auto canvas = canvas_of(sides, multiple);
  const auto region = region_in_canvas(sides, multiple);
  const auto mirror =
      std::min(sides.width, sides.height) > multiple ? Mirror::kAtEdge : Mirror::kBehindEdge;
  return mirrored_around(small, region.left, region.top, canvas.width, canvas.height, mirror);
}

Pixels fit_one_of_several(const Pixels& picture, int multiple) {
  const auto sides = sides_with_at_most({picture.width, picture.height}, kMostPixelsOfSeveral);
  const bool is_scaled = sides.width != picture.width;
  require_field(
      "reference", std::min(sides.width, sides.height) >= multiple,
      "a reference beside others should have at least ", multiple, " pixels per side, one ",
      is_scaled ? "of " : "has ", picture.width, "x", picture.height,
      is_scaled ? text_of(" is scaled down to a megapixel and has ", sides.width, "x", sides.height)
                : "");
  return middle_of(with_at_most(picture, kMostPixelsOfSeveral), multiple);
}

}  // namespace

PicturesTaken flux3_pictures(int size_multiple) {
  const int multiple = std::lcm(kGrid, size_multiple);
  return {.most_references = kMostReferences,
          .fit_reference = [=](const Pixels& p) { return fit_one_of_several(p, multiple); },
          .lone_reference =
              LoneReference{.fit = [=](const Pixels& p) { return fit_alone(p, multiple); },
                            .region =
                                [=](const Pixels& p) {
                                  return region_in_canvas(scaled_sides(p, multiple), multiple);
                                }}};
}

}  // namespace braid
