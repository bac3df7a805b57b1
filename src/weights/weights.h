// The tensors of a checkpoint, or of another source, seen through a scope. A module takes a
// `Weights` in its constructor and pulls what it needs by name and shape, so it is never
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

class Weights {
 public:
  Weights(Checkpoint checkpoint, Names names, LoadOptions options, ShardingTable shardings = {});

  Weights(std::shared_ptr<TensorSource> source, LoadOptions options, ShardingTable shardings = {});
  // Weights without a checkpoint: every tensor asked for exists.
  static Weights synthetic(LoadOptions options, ShardingTable shardings = {});

  Weights operator/(std::string_view child) const;
  Weights operator/(std::int64_t index) const;
  // The same scope, loading in another dtype.
  Weights as(at::ScalarType dtype) const;

  // The same scope; if the load has pages of this level, its tensors go to their own page, returned
  // by `page()`, and may be used only while it is in use. Otherwise `page()` is empty. `blocks`:
  // how many share a page of blocks.
  Weights paged(PageLevel level, const std::string& name = "weight", int blocks = 0) const;
  Page page() const { return page_; }
  std::int64_t blocks_per_page() const;

  // The same scope for a part of the model that is elsewhere: its tensors are checked and count as
  // used, but are not read; tensor() returns undefined ones.
  Weights unread() const;
  // The same scope for tensors used once, before those used repeatedly; they get their own pages.
  Weights once() const;

  // The same as unread(); everything asked for is added to `asked`.
  Weights surveyed(std::vector<SurveyedTensor>& asked) const;

  // The tensor `name` of this scope in the load's dtype, on its device. On a CPU, a tensor that
  // needs no conversion is used in place, in the mapped file. `shape` is the whole tensor's; the
  // result is this rank's share by the sharding table. Throws InputError if it is absent, is not a
  // floating-point tensor or has another shape.
  Tensor tensor(std::string_view name, at::IntArrayRef shape) const;

  // The same for the weight of a dense layer, shape [N C], in the form the load asks for. It is
  // quantized whole, then divided, so a share has the codes of one device.
  Matrix matrix(std::string_view name, at::IntArrayRef shape) const;

  // A table [rows ...] for row look-ups, in host memory and its stored dtype. If possible it stays
  // in the mapped file, reading only these rows. It is in no page and is not divided.
  Tensor table(std::string_view name, at::IntArrayRef shape) const;

  // The same scope for layers that may run on the load's second stream: if there is one, they have
  // scratch memory of their own.
  Weights on_second_stream() const;
  const std::optional<c10::Stream>& second_stream() const;

  // Scratch memory shared by the layers of one load that run on one stream.
  std::shared_ptr<Scratch> scratch() const;

  // What the sharding table says about this scope's layer.
  Outputs outputs() const;

  // Deliberately leaves all tensors of this scope unused.
  void skip() const;
  // Throws InputError naming the tensors that no module asked for. Call it at the end of every
  // load.
  void finish() const;

  at::ScalarType dtype() const { return dtype_; }
  at::Device device() const;
  // Whether layers should be asked for although the network does not run them.
  bool wants_unused() const;

 private:
  struct Load;
  std::string path(std::string_view name) const;
  std::optional<TensorPlan> find(std::string_view name, at::IntArrayRef shape,
                                 TensorRequest::Kind kind) const;
  Matrix delivered(const TensorPlan& plan) const;
  Matrix delivered_to_page(const TensorPlan& plan) const;
  Weights unread_from(std::shared_ptr<TensorSource> source) const;

  std::shared_ptr<Load> load_;
  std::shared_ptr<TensorSource> source_;
  std::string scope_;
  at::ScalarType dtype_;
  PageUse use_ = PageUse::kRepeated;
  std::string leaf_;
  bool is_in_block_ = false;
  bool goes_to_page_ = false, is_on_second_stream_ = false;
  Page page_;  // opened by paged()
};

}  // namespace braid
