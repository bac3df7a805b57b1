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

// A picture that drawing follows: edges, depths, poses.
struct ControlPicture {
  Pixels picture;
  // Of a ControlNet: how strongly, in which part of the steps that are taken (0 to 1), and for nets
  // that follow several kinds of pictures, which kind it is.
  double scale = 1, from = 0, to = 1;
  std::optional<int> mode = {};
};

// Whether models that were trained for it compute what references are once (kAuto), or all compute
// it anew in every step.
enum class ReferenceCache { kAuto, kOff };

// Pictures that a request starts from or looks at. A model says which it takes.
struct PicturesIn {
  // Image to image: the picture is resized to the request's size, noised by `strength` and drawn
  // anew from there. 0 to 1; unset: the model's own.
  std::optional<Pixels> init = {};
  std::optional<double> strength = {};
  // With `init`, and of its size: only what is white is drawn anew.
  std::optional<Pixels> mask = {};
  // Softens the mask's edges: the standard deviation of a Gaussian, in its pixels, 0 to 1000.
  double mask_blur = 0;
  // Draws, in the size of the request, only what lies around the white of the mask and so many
  // pixels more, and puts it back into its place. The result has the size of `init`.
  std::optional<int> padding_crop = {};
  // What an editing model looks at.
  std::vector<Pixels> references = {};
  std::vector<double> reference_scales = {};  // with Redux, one each; none: 1
  ReferenceCache reference_cache = ReferenceCache::kAuto;
  // Of a control model one; of ControlNets one each, or several that a single one follows.
  std::vector<ControlPicture> controls = {};

  bool is_empty() const { return !init && !mask && references.empty() && controls.empty(); }
};

}  // namespace braid
