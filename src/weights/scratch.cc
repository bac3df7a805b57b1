#include "weights/scratch.h"

#include <ATen/ATen.h>

namespace braid {

at::Tensor Scratch::take(at::IntArrayRef shape, at::ScalarType dtype, at::Device device) {
  const auto size = c10::multiply_integers(shape) * std::int64_t(c10::elementSize(dtype));
  if (!bytes_.defined() || bytes_.numel() < size || bytes_.device() != device) {
    bytes_ = at::Tensor();  // freed first, so that both never coexist
    bytes_ = at::empty({size}, at::TensorOptions(at::kByte).device(device));
  }
  return bytes_.narrow(0, 0, size).view(dtype).view(shape);
}

}  // namespace braid
