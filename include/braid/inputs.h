// Input pictures of a request.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <vector>

namespace braid {

// A picture with 8-bit values: three channels, or four with alpha.
struct Pixels {
  int width = 0, height = 0;
  std::vector<std::uint8_t> rgb;         // row-major, three bytes per pixel
  std::vector<std::uint8_t> alpha = {};  // one byte per pixel, 255 is opaque; empty: all are

  int channels() const { return alpha.empty() ? 3 : 4; }
};

// A picture to follow while drawing: edges, depths, poses. A ControlNet that fills pictures in
// follows the initial picture and its mask: it takes one of these at most, without pixels.
struct ControlPicture {
  Pixels picture = {};
  // What ControlNets need: their strength, the part of the steps taken in which they apply (0 to
  // 1), and the kind of picture, for nets that follow several kinds.
  double scale = 1, from = 0, to = 1;
  std::optional<int> mode = {};
};

// kAuto: models trained for it compute their references once. kOff: all models recompute them in
// every step.
enum class ReferenceCache { kAuto, kOff };

// A strength of 0 to 1 leaves this many of the first `steps` out (diffusers' get_timesteps).
inline int skipped_steps(int steps, double strength) {
  return int(std::max(steps - std::min(steps * strength, double(steps)), 0.0));
}

// Pictures to start from or to look at. Each model says which it takes.
struct PicturesIn {
  // Image to image: the picture is resized to the request's size, noised by `strength` and redrawn
  // from there. 0 to 1; unset: the model's default.
  std::optional<Pixels> init = {};
  std::optional<double> strength = {};
  // Goes with `init` and has its size: only white areas are redrawn.
  std::optional<Pixels> mask = {};
  // Softens the mask's edges: standard deviation of a Gaussian in mask pixels, 0 to 1000.
  double mask_blur = 0;
  // Draws only the mask's white area plus this margin in pixels, at the request's size, and pastes
  // it back. The result has the size of `init`.
  std::optional<int> padding_crop = {};
  // Pictures an editing model looks at: with their alpha, or on white if it has three channels.
  std::vector<Pixels> references = {};
  std::vector<double> reference_scales = {};  // with Redux, one each; empty: 1
  ReferenceCache reference_cache = ReferenceCache::kAuto;
  // The side of a square of whose area the layers are, in the reference's shape, for models that
  // take a reference apart. It replaces a width and height; unset: the model's first.
  std::optional<int> resolution = {};
  // One for a control model; one per ControlNet, or several that a single net follows.
  std::vector<ControlPicture> controls = {};

  bool is_empty() const { return !init && !mask && references.empty() && controls.empty(); }
};

}  // namespace braid
