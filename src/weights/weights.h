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
#include "weights/pieces.h"
#include "weights/plan.h"

namespace braid {

struct LoadOptions {
  at::ScalarType dtype = at::kFloat;
  at::Device device = at::kCPU;
  // Told the bytes of the checkpoint each time some have been read, or left alone on purpose; may
  // throw to end the load.
  std::function<void(std::int64_t bytes)> on_bytes = {};
  // Told of each tensor what was copied out of the files, or is used in place in them.
  std::function<void(const BytesRead& read)> on_read = {};
  // The ranks that share the weights, by a plan; each loads its own share. One rank: all of it.
  Group tensor_parallel = {};
};

// How a layer's outputs become whole where ranks share it.
struct Outputs {
  enum class Are { kWhole, kShared, kSummed, kGathered } are = Are::kWhole;
  Group group = {};
};

class Weights {
 public:
  Weights(Checkpoint checkpoint, Names names, LoadOptions options, Plan plan = {});

  // Weights of no checkpoint: every tensor that is asked for is there.
  static Weights synthetic(LoadOptions options, Plan plan = {});

  Weights operator/(std::string_view child) const;
  Weights operator/(std::int64_t index) const;
  // The same scope, loading in another dtype.
  Weights as(at::ScalarType dtype) const;

  // The same scope for a part of the model that is elsewhere: its tensors are checked and count as
  // used, but are not read; tensor() gives undefined ones.
  Weights unread() const;

  // The tensor `name` of this scope in the dtype and on the device of the load. On a CPU a tensor
  // that needs no conversion is used in place, in the mapped file.
  // `shape` is the whole tensor's; the result is this rank's share by the plan.
  // Throws InputError when it is absent, is no floating-point tensor or has another shape.
  Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  // What the plan says of the layer that this scope is.
  Outputs outputs() const;

  // Leaves every tensor of this scope unused on purpose.
  void skip() const;
  // Throws InputError naming the tensors that no module has asked for. Ends every load.
  void finish() const;

  at::ScalarType dtype() const { return dtype_; }

 private:
  struct Load;
  std::string path(std::string_view name) const;
  Tensor synthetic_share(std::string_view name, at::IntArrayRef shape) const;

  std::shared_ptr<Load> load_;
  std::string scope_;
  at::ScalarType dtype_;
  bool is_read_ = true;
};

}  // namespace braid
