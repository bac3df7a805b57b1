// Resizes pictures, equal to Pillow's Image.resize bit for bit. Of pictures without pixels, which
// stand for their sizes, resized(), its part, middle_of(), mirrored_around() and cropped() change
// the sides.
#pragma once

#include <cstdint>

#include "braid/inputs.h"

namespace braid {

enum class Resampling { kBilinear, kBicubic, kLanczos };

// Sides of 1 or more. A picture that already has this size is returned unchanged. Colours are
// mixed as they are multiplied by alpha, and divided by it again.
Pixels resized(const Pixels& picture, int width, int height, Resampling resampling);

// A part of a picture that may be too large to be made: one that covers a size may be as much
// larger as it is narrow.
struct PartOfResized {
  std::int64_t whole_width, whole_height;
  std::int64_t left, top;
  int width, height;
};
// Returns what cropped() would return of resized(), in the time and memory that the part takes. The
// part must lie within the whole.
Pixels part_of_resized(const Pixels& picture, const PartOfResized& part, Resampling resampling);

// Each pixel is the one that its middle falls on: Pillow's Resampling.NEAREST. Alpha is dropped.
Pixels resized_to_nearest(const Pixels& picture, int width, int height);

// Scaled down by Lanczos to at most `pixels`, keeping its aspect ratio. Sides are truncated, not
// rounded.
Pixels with_at_most(const Pixels& picture, std::int64_t pixels);
struct Sides {
  int width, height;
};
Sides sides_with_at_most(Sides sides, std::int64_t pixels);  // the resulting size

// `count` rows or columns beyond an edge of the picture: Pillow's bicubic result for a box of zero
// extent there.
enum class Edge { kTop, kBottom, kLeft, kRight };
Pixels beyond_edge(const Pixels& picture, Edge edge, int count);

// The middle, whose sides are the largest multiples of `multiple` that fit.
Pixels middle_of(const Pixels& picture, int multiple);

// Whether mirrors stand at the middle of the edge's pixels, which come once, or behind them.
enum class Mirror { kAtEdge, kBehindEdge };
// Returns width x height pixels with `picture` at (left, top) and its reflections around it:
// numpy's pad(), 'reflect' or 'symmetric'. Alpha is dropped.
Pixels mirrored_around(const Pixels& picture, int left, int top, int width, int height,
                       Mirror mirror);

// The part from column `left` and row `top` on; it must lie within the picture.
Pixels cropped(const Pixels& picture, int left, int top, int width, int height);

}  // namespace braid
