// Pictures that a request brings along.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

// A picture of 8-bit colours.
struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;  // row-major, three bytes a pixel
};

// Pictures that a request starts from or looks at. A model says which it takes.
struct PicturesIn {
  // Image to image: the picture is resized to the request's size, noised by `strength` and drawn
  // anew from there. 0 to 1; unset: the model's own.
  std::optional<Pixels> init = {};
  std::optional<double> strength = {};
  // With `init`, and of its size: only what is white is drawn anew.
  std::optional<Pixels> mask = {};
  // What an editing model looks at.
  std::vector<Pixels> references = {};
  // Edges or depths that a control model follows.
  std::optional<Pixels> control = {};

  bool is_empty() const { return !init && !mask && references.empty() && !control; }
};

}  // namespace braid
