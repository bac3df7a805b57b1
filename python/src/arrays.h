// Between vectors of include/braid and arrays of numpy.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>

#include <vector>

#include "braid/braid.h"

namespace braid::python {

using Floats = nanobind::ndarray<nanobind::numpy, float>;
using Bytes = nanobind::ndarray<nanobind::numpy, std::uint8_t>;
using FloatsIn = nanobind::ndarray<const float, nanobind::c_contig, nanobind::device::cpu>;
using BytesIn = nanobind::ndarray<const std::uint8_t, nanobind::shape<-1, -1, -1>,
                                  nanobind::c_contig, nanobind::device::cpu>;

// [height, width, 3], or 4 with alpha.
inline Pixels pixels_of(const BytesIn& array) {
  const auto channels = array.shape(2);
  if (channels != 3 && channels != 4)
    throw nanobind::value_error("pixels should have 3 channels, or 4 with alpha");
  Pixels pixels{.width = int(array.shape(1)), .height = int(array.shape(0)), .rgb = {}};
  const auto* const end = array.data() + array.size();
  for (const auto* one = array.data(); one != end; one += channels) {
    pixels.rgb.insert(pixels.rgb.end(), one, one + 3);
    if (channels == 4) pixels.alpha.push_back(one[3]);
  }
  return pixels;
}

// Arrays with memory of their own.
inline Floats array_of(const Latents& latents) {
  auto* const copy = new std::vector<float>(latents.values);
  const nanobind::capsule owner(
      copy, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  const std::vector<std::size_t> shape(latents.shape.begin(), latents.shape.end());
  return Floats(copy->data(), shape.size(), shape.data(), owner);
}
inline Bytes array_of(const std::vector<std::uint8_t>& pixels, int width, int height,
                      int channels = 3) {
  auto* const copy = new std::vector<std::uint8_t>(pixels);
  const nanobind::capsule owner(
      copy, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
  return Bytes(copy->data(), {std::size_t(height), std::size_t(width), std::size_t(channels)},
               owner);
}
// [height, width, 3], or 4 with alpha; without pixels if the picture holds only latents.
inline Bytes array_of(const Picture& picture) {
  if (picture.rgb.empty()) return array_of(picture.rgb, 0, 0);
  if (picture.alpha.empty()) return array_of(picture.rgb, picture.width, picture.height);
  std::vector<std::uint8_t> pixels;
  for (std::size_t i = 0; i < picture.alpha.size(); ++i) {
    pixels.insert(pixels.end(), &picture.rgb[3 * i], &picture.rgb[3 * i] + 3);
    pixels.push_back(picture.alpha[i]);
  }
  return array_of(pixels, picture.width, picture.height, 4);
}

inline Latents latents_of(const FloatsIn& array) {
  Latents latents;
  for (std::size_t i = 0; i < array.ndim(); ++i)
    latents.shape.push_back(std::int64_t(array.shape(i)));
  latents.values.assign(array.data(), array.data() + array.size());
  return latents;
}

}  // namespace braid::python
