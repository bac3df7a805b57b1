// What is to lie in a page, before it is known whether it has to be made.
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
  std::vector<TensorForm> tensors;  // that it becomes, in order
  // Says in words which bytes it is made of, and how: what says the same makes the same tensors.
  // Reads all of these bytes.
  std::function<std::string()> identity;
  std::function<std::vector<Tensor>()> make;  // in host memory
  std::function<void()> done = {};            // told once it is in its page
};

PageSource source_of(const Tensor& tensor);

}  // namespace braid
