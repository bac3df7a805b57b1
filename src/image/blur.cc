#include "image/blur.h"

#include <algorithm>
#include <cmath>

namespace braid {
namespace {

constexpr int kPasses = 3;
constexpr std::uint32_t kOne = 1 << 24;  // weights are whole numbers of 2^-24

// Half the length of the box that, applied three times, comes nearest to a Gaussian (Gwosdek et
// al., "Theoretical foundations of Gaussian convolution by extended box filtering", 2011). In
// float32 and in double where Pillow is: the last bits matter.
float box_radius(float radius) {
  const float variance = radius * radius / float(kPasses);
  const auto length = float(std::sqrt(12.0 * variance + 1.0));
  const auto whole = float(std::floor((length - 1.0) / 2.0));
  float part = (2 * whole + 1) * (whole * (whole + 1) - 3 * variance);
  part /= 6 * (variance - (whole + 1) * (whole + 1));
  return whole + part;
}

// 2 * radius + 1 values of weight `inner`, and one more of weight `outer` on each side.
struct Box {
  explicit Box(float half)
      : radius(int(half)),
        inner(std::uint32_t(float(kOne) / (half * 2 + 1))),
        outer((kOne - std::uint32_t(radius * 2 + 1) * inner) / 2) {}
  int radius;
  std::uint32_t inner, outer;
};

// The end values extend beyond the ends. Takes time for the line's length, whatever the radius.
void blur_line(const std::vector<std::uint8_t>& from, std::vector<std::uint8_t>& to,
               const Box& box) {
  const int last = int(from.size()) - 1;
  const auto at = [&](int i) { return std::uint32_t(from[std::size_t(std::clamp(i, 0, last))]); };
  std::uint32_t sum = std::uint32_t(box.radius) * at(0);
  for (int i = 0; i <= std::min(box.radius, last); ++i) sum += at(i);
  sum += std::uint32_t(std::max(box.radius - last, 0)) * at(last);
  for (int i = 0; i <= last; ++i) {
    const auto ends = at(i - box.radius - 1) + at(i + box.radius + 1);
    to[std::size_t(i)] = std::uint8_t((sum * box.inner + ends * box.outer + kOne / 2) >> 24);
    sum += at(i + box.radius + 1) - at(i - box.radius);
  }
}

// Blurs `count` values that lie `stride` bytes apart.
void blur_along(std::uint8_t* values, int count, std::size_t stride, const Box& box) {
  std::vector<std::uint8_t> line(std::size_t(count), 0), made(std::size_t(count), 0);
  for (std::size_t i = 0; i < line.size(); ++i) line[i] = values[i * stride];
  for (int pass = 0; pass < kPasses; ++pass) {
    blur_line(line, made, box);
    line.swap(made);
  }
  for (std::size_t i = 0; i < line.size(); ++i) values[i * stride] = line[i];
}

}  // namespace

Pixels blurred(const Pixels& picture, float radius) {
  auto out = picture;
  if (!(radius > 0)) return out;
  radius = std::min(radius, float(kMostBlur));
  const Box box(box_radius(radius));
  const auto row_bytes = std::size_t(out.width) * 3;
  for (std::size_t y = 0; y < std::size_t(out.height); ++y)
    for (std::size_t c = 0; c < 3; ++c) blur_along(&out.rgb[y * row_bytes + c], out.width, 3, box);
  for (std::size_t i = 0; i < row_bytes; ++i) blur_along(&out.rgb[i], out.height, row_bytes, box);
  return out;
}

}  // namespace braid
