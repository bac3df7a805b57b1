// The tensors of a checkpoint, or of another source, seen through a scope. A module takes a
// `Weights` in its constructor and pulls what it needs by name and shape; it is therefore never
// half-loaded.
//
//   MlpEmbedder(const Weights& w, ...) : in_(w / "in_layer", ...), out_(w / "out_layer", ...) {}
#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <string_view>

#include "weights/load_options.h"
#include "weights/paging/page.h"
#include "weights/scratch.h"
#include "weights/sharding.h"
#include "weights/sources/source.h"

namespace braid {

// How a layer's outputs become whole where ranks share it.
struct Outputs {
  enum class Are { kWhole, kShared, kSummed, kGathered } are = Are::kWhole;
  Group group = {};
};

class Weights {
 public:
  Weights(Checkpoint checkpoint, Names names, LoadOptions options, ShardingTable shardings = {});

  Weights(std::shared_ptr<TensorSource> source, LoadOptions options, ShardingTable shardings = {});
  // Weights of no checkpoint: every tensor that is asked for is there.
  static Weights synthetic(LoadOptions options, ShardingTable shardings = {});

  Weights operator/(std::string_view child) const;
  Weights operator/(std::int64_t index) const;
  // The same scope, loading in another dtype.
  Weights as(at::ScalarType dtype) const;

  // The same scope, whose tensors from here on go to a page of their own if the load has pages of
  // this level. They may then be used only while `page()` is; else that is the empty page.
  Weights paged(PageLevel level, const std::string& name = "weight") const;
  Page page() const { return page_; }
  std::int64_t blocks_per_page() const;

  // The same scope for a part of the model that is elsewhere: its tensors are checked and count as
  // used, but are not read; tensor() gives undefined ones.
  Weights unread() const;
  // The same scope for what is needed once before what is needed again and again: in pages of its
  // own.
  Weights once() const;

  // As unread(); all that is asked for is added to `asked`.
  Weights surveyed(std::vector<AskedTensor>& asked) const;

  // The tensor `name` of this scope in the dtype and on the device of the load. On a CPU a tensor
  // that needs no conversion is used in place, in the mapped file.
  // `shape` is the whole tensor's; the result is this rank's share by the sharding table.
  // Throws InputError when it is absent, is no floating-point tensor or has another shape.
  Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  // The same for the weight of a dense layer, shape [N C], in the form that the load asks for.
  // Quantised whole, then shared: the codes of a share are those of one device.
  Matrix matrix(std::string_view name, at::IntArrayRef shape) const;

  // A table [rows ...] of which some rows are looked up: in host memory, in the dtype in which it
  // is stored, and if it can be in the mapped file, of which only these rows are then read. It is
  // in no page, and is not shared.
  Tensor table(std::string_view name, at::IntArrayRef shape) const;

  // Memory that the layers of one load share while they compute.
  std::shared_ptr<Scratch> scratch() const;

  // What the sharding table says of the layer that this scope is.
  Outputs outputs() const;

  // Leaves every tensor of this scope unused on purpose.
  void skip() const;
  // Throws InputError naming the tensors that no module has asked for. Ends every load.
  void finish() const;

  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const;

 private:
  struct Load;
  std::string path(std::string_view name) const;
  std::optional<Recipe> find(std::string_view name, at::IntArrayRef shape,
                             AskedTensor::Kind kind) const;
  Matrix delivered(const Recipe& recipe) const;
  Weights unread_from(std::shared_ptr<TensorSource> source) const;

  std::shared_ptr<Load> load_;
  std::shared_ptr<TensorSource> source_;
  std::string scope_;
  at::ScalarType dtype_;
  PageUse use_ = PageUse::kRepeated;
  bool goes_to_page_ = false;
  Page page_;  // that paged() has opened here
};

}  // namespace braid
