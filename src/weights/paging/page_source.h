// How to build the contents of a page, if they are not on disk yet.
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <string>
#include <vector>

namespace braid {

using at::Tensor;

struct TensorForm {
  at::ScalarType dtype;
  std::vector<std::int64_t> shape;
};

struct PageSource {
  std::vector<TensorForm> tensors;  // the tensors it yields, in order
  // A description of the bytes it is made of, and how: equal descriptions yield equal tensors.
  // Reads all of these bytes.
  std::function<std::string()> identity;
  std::function<std::vector<Tensor>()> make;  // in host memory
  std::function<void()> done = {};            // called once it is in its page
};

}  // namespace braid
