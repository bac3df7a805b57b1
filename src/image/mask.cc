#include "image/mask.h"

#include <algorithm>
#include <cstring>

#include "base/error.h"
#include "image/resize.h"

namespace braid {
namespace {

constexpr auto kResampling = Resampling::kLanczos;

// value / 255, rounded the way Pillow divides.
std::uint32_t over_255(std::uint32_t value) {
  value += 128;
  return (value + (value >> 8)) >> 8;
}

// A span goes from the first marked value to one past the last; both are 0 if none is marked.
struct Span {
  int begin = 0, end = 0;
  int length() const { return end - begin; }
  void mark(int i) {
    if (end == 0) begin = i;
    begin = std::min(begin, i);
    end = std::max(end, i + 1);
  }
};

Span padded(const Span& span, int padding, int size) {
  return {.begin = std::max(span.begin - padding, 0), .end = std::min(span.end + padding, size)};
}

// Longer by `more`, half on each side, then shifted or cut to stay within 0 .. size.
Span lengthened(Span span, int more, int size) {
  span.begin -= more / 2;
  span.end += more - more / 2;
  if (const int beyond = span.end - size; beyond > 0) {
    span.begin -= beyond;
    span.end -= beyond;
  }
  if (span.begin < 0) {
    span.end -= span.begin;
    span.begin = 0;
  }
  span.end = std::min(span.end, size);
  return span;
}

void paste(const Pixels& from, Pixels& onto, int left, int top) {
  const int begin = std::max(0, -left), end = std::min(from.width, onto.width - left);
  const int first = std::max(0, -top), last = std::min(from.height, onto.height - top);
  for (int y = first; y < last; ++y)
    std::memcpy(&onto.rgb[(std::size_t(top + y) * onto.width + (left + begin)) * 3],
                &from.rgb[(std::size_t(y) * from.width + begin) * 3], std::size_t(end - begin) * 3);
}

Pixels black(int width, int height) {
  return {width, height, std::vector<std::uint8_t>(std::size_t(width) * height * 3)};
}

enum class Meets { kWithin, kAround };  // the wanted size

struct LongSides {
  std::int64_t width, height;  // more than memory holds where they cover a narrow size
};

// The picture's aspect ratio, as large as fits within width x height or as small as covers it.
LongSides in_own_shape(const Pixels& picture, int width, int height, Meets meets) {
  const double wanted = double(width) / height, own = double(picture.width) / picture.height;
  const bool has_width = meets == Meets::kWithin ? wanted < own : wanted > own;
  const bool has_height = meets == Meets::kWithin ? wanted >= own : wanted <= own;
  const auto part = [](int all, int of, int by) {
    return std::max<std::int64_t>(1, std::int64_t(all) * of / by);
  };
  return {.width = has_width ? width : part(picture.width, height, picture.height),
          .height = has_height ? height : part(picture.height, width, picture.width)};
}

// Where a side of `whole` lies whose middle is that of `all`, and what can be seen of it.
struct Seen {
  int at;              // of `all`
  std::int64_t first;  // of `whole`
  int count;
};
Seen seen_of(std::int64_t whole, int all) {
  const auto begin = all / 2 - whole / 2;
  const auto first = std::max<std::int64_t>(0, -begin), at = std::max<std::int64_t>(0, begin);
  return {.at = int(at), .first = first, .count = int(std::min(whole - first, all - at))};
}

// The picture as `whole`, in the middle of width x height pixels, black around it or cut off.
Pixels in_middle(const Pixels& picture, LongSides whole, int width, int height) {
  auto out = black(width, height);
  const auto across = seen_of(whole.width, width), down = seen_of(whole.height, height);
  const auto seen = part_of_resized(picture,
                                    {.whole_width = whole.width,
                                     .whole_height = whole.height,
                                     .left = across.first,
                                     .top = down.first,
                                     .width = across.count,
                                     .height = down.count},
                                    kResampling);
  paste(seen, out, across.at, down.at);
  return out;
}

// One channel of `kept` over `drawn`, where the mask is `drawn_part`. Pillow multiplies the overlay
// by its alpha, divides it again, and composes with 7 extra bits.
std::uint8_t composed(std::uint32_t kept, std::uint32_t drawn, std::uint32_t drawn_part) {
  const auto alpha = 255 - drawn_part;
  if (alpha == 0) return std::uint8_t(drawn);
  auto value = over_255(kept * alpha);
  if (alpha < 255) value = std::min<std::uint32_t>(255, 255 * value / alpha);
  const auto sum = (value * alpha + drawn * drawn_part) * 128 + (128U << 7);
  return std::uint8_t((((sum >> 8) + sum) >> 8) >> 7);
}

}  // namespace

std::vector<std::uint8_t> luma(const Pixels& picture) {
  std::vector<std::uint8_t> out(picture.rgb.size() / 3);
  for (std::size_t i = 0; i < out.size(); ++i) {
    const auto* const p = &picture.rgb[3 * i];
    out[i] = std::uint8_t((p[0] * 19595 + p[1] * 38470 + p[2] * 7471 + 0x8000) >> 16);
  }
  return out;
}

bool is_black(const Pixels& mask) {
  return std::ranges::all_of(luma(mask), [](std::uint8_t level) { return level == 0; });
}

Region region_to_draw(const Pixels& mask, int width, int height, int padding) {
  const auto levels = luma(mask);
  Span across, down;
  for (int y = 0; y < mask.height; ++y)
    for (int x = 0; x < mask.width; ++x)
      if (levels[std::size_t(y) * mask.width + x] != 0) {
        across.mark(x);
        down.mark(y);
      }
  require(across.end > 0, "the mask is black: nothing of the picture would be redrawn");
  across = padded(across, padding, mask.width);
  down = padded(down, padding, mask.height);
  const double shape = double(width) / height;
  if (double(across.length()) / down.length() > shape)
    down = lengthened(down, int(across.length() / shape - down.length()), mask.height);
  else
    across = lengthened(across, int(down.length() * shape - across.length()), mask.width);
  return {
      .left = across.begin, .top = down.begin, .width = across.length(), .height = down.length()};
}

Pixels filled(const Pixels& picture, const Region& region, int width, int height) {
  const auto part = cropped(picture, region.left, region.top, region.width, region.height);
  const auto sides = in_own_shape(part, width, height, Meets::kWithin);
  const auto inside = resized(part, int(sides.width), int(sides.height), kResampling);
  auto out = in_middle(inside, sides, width, height);
  const int above = height / 2 - inside.height / 2, before = width / 2 - inside.width / 2;
  if (inside.width == width && above > 0) {
    paste(beyond_edge(inside, Edge::kTop, above), out, 0, 0);
    paste(beyond_edge(inside, Edge::kBottom, above), out, 0, above + inside.height);
  }
  if (inside.height == height && before > 0) {
    paste(beyond_edge(inside, Edge::kLeft, before), out, 0, 0);
    paste(beyond_edge(inside, Edge::kRight, before), out, before + inside.width, 0);
  }
  return out;
}

Pixels put_back(const Pixels& drawn, const Region& region, const Pixels& picture,
                const Pixels& mask) {
  auto out = black(picture.width, picture.height);
  const auto around = in_own_shape(drawn, region.width, region.height, Meets::kAround);
  paste(in_middle(drawn, around, region.width, region.height), out, region.left, region.top);
  const auto levels = luma(mask);
  for (std::size_t i = 0; i < out.rgb.size(); ++i)
    out.rgb[i] = composed(picture.rgb[i], out.rgb[i], levels[i / 3]);
  return out;
}

}  // namespace braid
