#include "image/resize.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <numbers>

namespace braid {
namespace {

// Weights are whole numbers of 2^-22: with sums of 8-bit values they stay within 32 bits.
constexpr int kBits = 22;
constexpr std::int32_t kHalf = 1 << (kBits - 1);

double triangle(double x) { return std::max(0.0, 1.0 - std::abs(x)); }

// Keys' cubic convolution, with a = -1/2.
double cubic(double x) {
  constexpr double a = -0.5;
  x = std::abs(x);
  if (x < 1.0) return ((a + 2.0) * x - (a + 3.0)) * x * x + 1;
  if (x < 2.0) return (((x - 5) * x + 8) * x - 4) * a;
  return 0;
}

double sinc(double x) {
  if (x == 0) return 1;
  x *= std::numbers::pi;
  return std::sin(x) / x;
}

double lanczos(double x) { return x >= -3 && x < 3 ? sinc(x) * sinc(x / 3) : 0; }

struct Kernel {
  double (*value)(double);
  double support;  // zero beyond this distance
};

Kernel kernel_of(Resampling resampling) {
  switch (resampling) {
    case Resampling::kBilinear:
      return {triangle, 1};
    case Resampling::kBicubic:
      return {cubic, 2};
    case Resampling::kLanczos:
      break;
  }
  return {lanczos, 3};
}

// The weights that make one output from the inputs starting at `first`.
struct Taps {
  int first;
  std::vector<std::int32_t> weights;
};

// A range of inputs, sampled evenly.
struct Extent {
  double begin, length;
};

// The kernel is scaled to the wider spacing: the outputs' when shrinking, else the inputs'.
Taps taps_of(const Kernel& kernel, int in, const Extent& extent, std::int64_t out,
             std::int64_t index) {
  const double scale = extent.length / double(out);
  const double spacing = std::max(scale, 1.0);
  const double support = kernel.support * spacing;
  const double center = extent.begin + (double(index) + 0.5) * scale;
  const int first = std::max(0, int(center - support + 0.5));
  const int count = std::min(in, int(center + support + 0.5)) - first;
  std::vector<double> values;
  double sum = 0;
  const double inverse = 1.0 / spacing;
  for (int i = 0; i < count; ++i) {
    values.push_back(kernel.value((i + first - center + 0.5) * inverse));
    sum += values.back();
  }
  Taps taps{first, {}};
  for (const double value : values) {
    const double weight = (sum != 0 ? value / sum : value) * (1 << kBits);
    taps.weights.push_back(std::int32_t(weight < 0 ? weight - 0.5 : weight + 0.5));
  }
  return taps;
}

// One side of the inputs that a part reads, and how its outputs are made of them.
struct Pass {
  int begin, end;          // of the inputs
  std::vector<Taps> taps;  // from `begin` on; none if the side stays as it is
};

Pass pass_to(Resampling resampling, int in, std::int64_t whole, std::int64_t first, int count) {
  if (in == whole) return {.begin = int(first), .end = int(first) + count, .taps = {}};
  const auto kernel = kernel_of(resampling);
  Pass pass{.begin = in, .end = 0, .taps = {}};
  for (int i = 0; i < count; ++i) {
    pass.taps.push_back(taps_of(kernel, in, {0, double(in)}, whole, first + i));
    const auto& [begin, weights] = pass.taps.back();
    pass.begin = std::min(pass.begin, begin);
    pass.end = std::max(pass.end, begin + int(weights.size()));
  }
  for (auto& tap : pass.taps) tap.first -= pass.begin;
  return pass;
}

std::vector<Taps> taps_at(double place, int in, int count) {
  const Kernel kernel{cubic, 2};
  return {std::size_t(count), taps_of(kernel, in, {place, 0}, count, 0)};
}

// Inputs lie `stride` bytes apart.
std::uint8_t weighted(const std::uint8_t* inputs, std::size_t stride, const Taps& taps) {
  std::int32_t sum = kHalf;
  for (const auto weight : taps.weights) {
    sum += *inputs * weight;
    inputs += stride;
  }
  return std::uint8_t(std::clamp(sum >> kBits, 0, 255));
}

Pixels mixed_across(const Pixels& in, const std::vector<Taps>& taps) {
  const int width = int(taps.size());
  Pixels out{width, in.height, std::vector<std::uint8_t>(std::size_t(width) * in.height * 3)};
  auto* to = out.rgb.data();
  for (int y = 0; y < in.height; ++y) {
    const auto* const row = &in.rgb[std::size_t(y) * in.width * 3];
    for (const auto& tap : taps)
      for (int c = 0; c < 3; ++c) *to++ = weighted(row + tap.first * 3 + c, 3, tap);
  }
  return out;
}

Pixels mixed_down(const Pixels& in, const std::vector<Taps>& taps) {
  const int height = int(taps.size());
  const auto row_bytes = std::size_t(in.width) * 3;
  Pixels out{in.width, height, std::vector<std::uint8_t>(row_bytes * height)};
  auto* to = out.rgb.data();
  for (const auto& tap : taps) {
    const auto* const column = &in.rgb[tap.first * row_bytes];
    for (std::size_t i = 0; i < row_bytes; ++i) *to++ = weighted(column + i, row_bytes, tap);
  }
  return out;
}

// Pillow 13 starts with the pass that leaves less work: vertically if the height shrinks by more
// than twice as much as the width.
Pixels part_of_opaque(const Pixels& picture, const PartOfResized& part, Resampling resampling) {
  const auto shorter = picture.height - part.whole_height,
             narrower = picture.width - part.whole_width;
  const bool is_down_first = shorter > 0 && shorter > 2 * narrower;
  const auto across = pass_to(resampling, picture.width, part.whole_width, part.left, part.width);
  const auto down = pass_to(resampling, picture.height, part.whole_height, part.top, part.height);
  auto out =
      cropped(picture, across.begin, down.begin, across.end - across.begin, down.end - down.begin);
  if (is_down_first) out = mixed_down(out, down.taps);
  if (!across.taps.empty()) out = mixed_across(out, across.taps);
  if (!is_down_first && !down.taps.empty()) out = mixed_down(out, down.taps);
  return out;
}

// (value * alpha) / 255, rounded: Pillow's conversion from RGBA to RGBa.
std::uint8_t times_alpha(std::uint32_t value, std::uint32_t alpha) {
  const auto product = value * alpha + 128;
  return std::uint8_t((product + (product >> 8)) >> 8);
}

// The way back.
std::uint8_t over_alpha(std::uint32_t value, std::uint32_t alpha) {
  const bool is_plain = alpha == 0 || alpha == 255;
  return std::uint8_t(is_plain ? value : std::min(255u, 255u * value / alpha));
}

// Alpha as a grey picture.
Pixels grey_of_alpha(const Pixels& picture) {
  Pixels grey{picture.width, picture.height, {}};
  for (const auto value : picture.alpha) grey.rgb.insert(grey.rgb.end(), 3, value);
  return grey;
}

}  // namespace

Pixels part_of_resized(const Pixels& picture, const PartOfResized& part, Resampling resampling) {
  if (picture.rgb.empty()) return {.width = part.width, .height = part.height, .rgb = {}};
  if (picture.width == part.whole_width && picture.height == part.whole_height)
    return cropped(picture, int(part.left), int(part.top), part.width, part.height);
  if (picture.channels() == 3) return part_of_opaque(picture, part, resampling);
  auto colours = picture;
  for (std::size_t i = 0; i < colours.rgb.size(); ++i)
    colours.rgb[i] = times_alpha(colours.rgb[i], picture.alpha[i / 3]);
  colours.alpha.clear();
  auto out = part_of_opaque(colours, part, resampling);
  const auto alpha = part_of_opaque(grey_of_alpha(picture), part, resampling);
  for (std::size_t i = 0; i < out.rgb.size(); ++i)
    out.rgb[i] = over_alpha(out.rgb[i], alpha.rgb[i]);
  for (std::size_t i = 0; i < alpha.rgb.size(); i += 3) out.alpha.push_back(alpha.rgb[i]);
  return out;
}

Pixels resized(const Pixels& picture, int width, int height, Resampling resampling) {
  return part_of_resized(picture,
                         {.whole_width = width,
                          .whole_height = height,
                          .left = 0,
                          .top = 0,
                          .width = width,
                          .height = height},
                         resampling);
}

namespace {

// Where the middles of `count` pixels fall on a row of `from`. Pillow adds up steps, whose rounding
// decides where a middle falls between two.
std::vector<std::size_t> nearest_places(int from, int count) {
  const double step = double(from) / count;
  std::vector<std::size_t> places;
  double middle = step * 0.5;
  for (int i = 0; i < count; ++i, middle += step)
    places.push_back(std::size_t(std::min(int(middle), from - 1)));
  return places;
}

}  // namespace

Pixels resized_to_nearest(const Pixels& picture, int width, int height) {
  Pixels out{.width = width, .height = height, .rgb = {}};
  out.rgb.reserve(std::size_t(width) * std::size_t(height) * 3);
  const auto columns = nearest_places(picture.width, width);
  for (const auto row : nearest_places(picture.height, height))
    for (const auto column : columns) {
      const auto* const pixel = &picture.rgb[3 * (row * std::size_t(picture.width) + column)];
      out.rgb.insert(out.rgb.end(), pixel, pixel + 3);
    }
  return out;
}

Sides sides_with_at_most(Sides sides, std::int64_t pixels) {
  const double all = double(sides.width) * sides.height;
  if (all <= double(pixels)) return sides;
  const double scale = std::sqrt(double(pixels) / all);
  const auto scaled = [&](int side) { return std::max(1, int(side * scale)); };
  return {.width = scaled(sides.width), .height = scaled(sides.height)};
}

Pixels with_at_most(const Pixels& picture, std::int64_t pixels) {
  const auto sides = sides_with_at_most({picture.width, picture.height}, pixels);
  return resized(picture, sides.width, sides.height, Resampling::kLanczos);
}

Pixels beyond_edge(const Pixels& picture, Edge edge, int count) {
  if (edge == Edge::kTop || edge == Edge::kBottom) {
    const double place = edge == Edge::kTop ? 0 : picture.height;
    return mixed_down(picture, taps_at(place, picture.height, count));
  }
  const double place = edge == Edge::kLeft ? 0 : picture.width;
  return mixed_across(picture, taps_at(place, picture.width, count));
}

Pixels middle_of(const Pixels& p, int multiple) {
  const int width = p.width / multiple * multiple, height = p.height / multiple * multiple;
  return cropped(p, (p.width - width) / 2, (p.height - height) / 2, width, height);
}

namespace {

// The place in a row of `count` whose reflection stands at `at`.
int mirrored(int at, int count, Mirror mirror) {
  if (count == 1) return 0;
  const int period = mirror == Mirror::kAtEdge ? 2 * (count - 1) : 2 * count;
  const int in_period = (at % period + period) % period;
  if (in_period < count) return in_period;
  return mirror == Mirror::kAtEdge ? period - in_period : period - 1 - in_period;
}

}  // namespace

Pixels mirrored_around(const Pixels& picture, int left, int top, int width, int height,
                       Mirror mirror) {
  if (picture.rgb.empty()) return {.width = width, .height = height, .rgb = {}};
  Pixels out{.width = width, .height = height, .rgb = {}};
  out.rgb.reserve(std::size_t(width) * std::size_t(height) * 3);
  for (int y = 0; y < height; ++y)
    for (int x = 0; x < width; ++x) {
      const auto row = std::size_t(mirrored(y - top, picture.height, mirror));
      const auto column = std::size_t(mirrored(x - left, picture.width, mirror));
      const auto* const pixel = &picture.rgb[3 * (row * std::size_t(picture.width) + column)];
      out.rgb.insert(out.rgb.end(), pixel, pixel + 3);
    }
  return out;
}

Pixels cropped(const Pixels& picture, int left, int top, int width, int height) {
  if (picture.rgb.empty()) return {.width = width, .height = height, .rgb = {}};
  const auto row_bytes = std::size_t(width) * 3;
  Pixels out{width, height, std::vector<std::uint8_t>(row_bytes * height)};
  for (int y = 0; y < height; ++y) {
    const auto from = (std::size_t(top + y) * picture.width + left) * 3;
    std::memcpy(&out.rgb[y * row_bytes], &picture.rgb[from], row_bytes);
    if (picture.channels() == 3) continue;
    const auto alpha = picture.alpha.begin() + std::ptrdiff_t(from / 3);
    out.alpha.insert(out.alpha.end(), alpha, alpha + width);
  }
  return out;
}

}  // namespace braid
