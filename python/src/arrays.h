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
using BytesIn = nanobind::ndarray<const std::uint8_t, nanobind::shape<-1, -1, 3>,
                                  nanobind::c_contig, nanobind::device::cpu>;

// Arrays with memory of their own.
inline Floats array_of(const Latents& latents) {
  auto* const copy = new std::vector<float>(latents.values);
  const nanobind::capsule owner(
      copy, [](void* p) noexcept { delete static_cast<std::vector<float>*>(p); });
  const std::vector<std::size_t> shape(latents.shape.begin(), latents.shape.end());
  return Floats(copy->data(), shape.size(), shape.data(), owner);
}
inline Bytes array_of(const std::vector<std::uint8_t>& rgb, int width, int height) {
  auto* const copy = new std::vector<std::uint8_t>(rgb);
  const nanobind::capsule owner(
      copy, [](void* p) noexcept { delete static_cast<std::vector<std::uint8_t>*>(p); });
  return Bytes(copy->data(), {std::size_t(height), std::size_t(width), 3}, owner);
}

inline Latents latents_of(const FloatsIn& array) {
  Latents latents;
  for (std::size_t i = 0; i < array.ndim(); ++i)
    latents.shape.push_back(std::int64_t(array.shape(i)));
  latents.values.assign(array.data(), array.data() + array.size());
  return latents;
}

}  // namespace braid::python
