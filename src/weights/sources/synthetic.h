// Values for weights that no file has: to measure and to prove layouts at sizes whose files are not
// at hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "weights/sources/pieces.h"

namespace braid {

class SyntheticValues {
 public:
  explicit SyntheticValues(std::uint64_t seed = 0);

  // The wanted rows and columns of the tensor `path` of `shape`. Matrices are normal with a
  // deviation of 1/sqrt(columns), as initialised layers are; vectors have a deviation of 0.02
  // around 1 where `path` names a norm's scale or variance, else around 0. An element has the same
  // value whatever is wanted beside it.
  at::Tensor share(const std::string& path, at::IntArrayRef shape, const Wanted& wanted,
                   const at::TensorOptions& options) const;

  // Says in words which values all of these are.
  std::string identity_of(const std::string& path, at::IntArrayRef shape) const;

 private:
  at::Tensor normal_;  // standard normal values that are used again and again
  std::string drawn_;  // what they are, in words
};

}  // namespace braid
