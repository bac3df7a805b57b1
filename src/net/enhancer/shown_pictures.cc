#include "net/enhancer/shown_pictures.h"

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "image/file_form.h"
#include "image/over_white.h"
#include "image/resize.h"

namespace braid::net {
namespace {

constexpr std::size_t kMostPictures = 10;
constexpr std::int64_t kMegapixel = std::int64_t(1024) * 1024;
constexpr int kQuality = 92;
// FLUX.3's enhancer uses these: diffusers.modular_pipelines.flux3.prompt_upsampler.
constexpr int kMultiple = 32, kLongest = 200;

std::int64_t shared_budget(int count) {
  return count == 1 ? kMegapixel : count == 2 ? 724 * 724 : 512 * 512;
}

int down_to_multiple(double side) { return std::max(1, int(side / kMultiple)) * kMultiple; }

// Halves go to the even multiple, as by Python's round().
int nearest_multiple(int side) {
  return std::max(1, int(std::nearbyint(double(side) / kMultiple))) * kMultiple;
}

Pixels scaled(const Pixels& picture, PictureRule rule, int count) {
  if (rule == PictureRule::kMegapixel) {
    const bool is_large = std::int64_t(picture.width) * picture.height > kMegapixel;
    return is_large ? with_at_most(picture, kMegapixel) : picture;
  }
  const auto size = shared_size(picture.width, picture.height, count);
  return resized(picture, size.width, size.height, Resampling::kLanczos);
}

}  // namespace

ShownSize shared_size(int width, int height, int count) {
  require(std::max(width, height) <= std::int64_t(kLongest) * std::min(width, height),
          "a picture of ", width, "x", height, " is too narrow for the enhancer");
  const auto budget = shared_budget(count);
  const auto is_over = [&](ShownSize s) { return std::int64_t(s.width) * s.height > budget; };
  ShownSize size{nearest_multiple(width), nearest_multiple(height)};
  if (is_over(size)) {
    const double scale = std::sqrt(double(width) * height / double(budget));
    size = {down_to_multiple(width / scale), down_to_multiple(height / scale)};
  }
  if (!is_over(size)) return size;
  if (size.width == kMultiple)
    size.height = down_to_multiple(double(budget / size.width));
  else
    size.width = down_to_multiple(double(budget / size.height));
  return size;
}

std::vector<std::string> shown_pictures(const std::vector<const Pixels*>& pictures,
                                        PictureRule rule) {
  require(pictures.size() <= kMostPictures, "an enhancer looks at up to ", kMostPictures,
          " pictures, there are ", pictures.size());
  std::vector<std::string> files;
  for (const auto* const picture : pictures) {
    const auto small = scaled(over_white(*picture), rule, int(pictures.size()));
    files.push_back(encoded({.format = FileForm::Format::kJpeg, .quality = kQuality}, small.width,
                            small.height, small.rgb));
  }
  return files;
}

}  // namespace braid::net
