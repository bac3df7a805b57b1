// Synthetic weights, for measuring and verifying layouts at sizes without files at hand.
#pragma once

#include <ATen/core/Tensor.h>

#include <string>

#include "weights/sources/request.h"

namespace braid {

class SyntheticValues {
 public:
  explicit SyntheticValues(std::uint64_t seed = 0);

  // The wanted rows and columns of tensor `path` of `shape`. Matrices are normal with deviation
  // 1/sqrt(columns), like initialised layers. Vectors have deviation 0.02, around 1 if `path` names
  // a norm's scale or variance, otherwise around 0. An element's value does not depend on the share
  // requested.
  at::Tensor share(const std::string& path, at::IntArrayRef shape, const Shard& wanted,
                   const at::TensorOptions& options) const;

  // A description of all these values.
  std::string identity_of(const std::string& path, at::IntArrayRef shape) const;

 private:
  at::Tensor normal_;  // standard normal values, reused cyclically
  std::string drawn_;  // their description
};

}  // namespace braid
