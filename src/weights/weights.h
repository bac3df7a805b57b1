// A checkpoint seen through a scope. A module takes a `Weights` in its constructor and pulls what
// it needs by name and shape; it is therefore never half-loaded.
//
//   MlpEmbedder(const Weights& w, ...) : in_(w / "in_layer", ...), out_(w / "out_layer", ...) {}
#pragma once

#include <ATen/core/Tensor.h>

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "weights/checkpoint.h"
#include "weights/names.h"

namespace braid {

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Told the bytes of the checkpoint each time some have been read; may throw to end the load.
  std::function<void(std::int64_t bytes)> on_bytes = {};
};

class Weights {
 public:
  Weights(Checkpoint checkpoint, Names names, LoadOptions options);

  Weights operator/(std::string_view child) const;
  Weights operator/(std::int64_t index) const;
  // The same scope, loading in another dtype.
  Weights as(at::ScalarType dtype) const;

  // The tensor `name` of this scope in the dtype and on the device of the load. On a CPU a tensor
  // that needs no conversion is used in place, in the mapped file.
  // Throws InputError when it is absent, is no floating-point tensor or has another shape.
  Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  // Leaves every tensor of this scope unused on purpose.
  void skip() const;
  // Throws InputError naming the tensors that no module has asked for. Ends every load.
  void finish() const;

  at::ScalarType dtype() const { return dtype_; }

 private:
  struct Load;
  std::string path(std::string_view name) const;

  std::shared_ptr<Load> load_;
  std::string scope_;
  at::ScalarType dtype_;
};

}  // namespace braid
