#include "pipeline/families/flux2/references.h"

#include <ATen/ATen.h>

#include <cmath>

#include "base/error.h"
#include "image/resize.h"
#include "pipeline/families/patches.h"

namespace braid {
namespace {

constexpr int kMostReferences = 10;  // that FLUX.2-dev was trained with
constexpr int kShortestSide = 64, kLongestRatio = 8;
constexpr double kMostPixels = 1024 * 1024;
constexpr int kFirstPlace = 10;  // and the distance from one reference to the next

void check_reference(const Pixels& p) {
  require(p.width >= kShortestSide && p.height >= kShortestSide,
          "a reference should have at least ", kShortestSide, " pixels a side, one has ", p.width,
          "x", p.height);
  require(
      double(std::max(p.width, p.height)) <= double(kLongestRatio) * std::min(p.width, p.height),
      "a reference should be at most ", kLongestRatio, " times as long as wide, one has ", p.width,
      "x", p.height);
}

Pixels with_fewer_pixels(const Pixels& p) {
  const double pixels = double(p.width) * p.height;
  if (pixels <= kMostPixels) return p;
  const double scale = std::sqrt(kMostPixels / pixels);
  return resized(p, int(p.width * scale), int(p.height * scale), Resampling::kLanczos);
}

Pixels middle_of(const Pixels& p, int multiple) {
  const int width = p.width / multiple * multiple, height = p.height / multiple * multiple;
  return cropped(p, (p.width - width) / 2, (p.height - height) / 2, width, height);
}

}  // namespace

PicturesTaken flux2_pictures(int multiple) {
  return {.most_references = kMostReferences, .fit_reference = [=](const Pixels& picture) {
            check_reference(picture);
            return middle_of(with_fewer_pixels(picture), multiple);
          }};
}

Tokens flux2_reference(const Tensor& latents_1CHW, int number) {
  auto ids = patch_positions(
      {.channels = 1, .height = 2 * latents_1CHW.size(2), .width = 2 * latents_1CHW.size(3)},
      latents_1CHW.device());
  ids.select(1, 0).fill_(kFirstPlace * (number + 1));
  return {.x_BLC = latents_1CHW.flatten(2).transpose(1, 2).contiguous(),
          .ids_LA = at::constant_pad_nd(ids, {0, 1})};
}

}  // namespace braid
