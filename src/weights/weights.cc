#include "weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"

namespace braid {

// State shared by the scopes of one load.
struct Weights::Load {
  LoadOptions options;
  ShardingTable shardings;
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  std::shared_ptr<Scratch> second_scratch = std::make_shared<Scratch>();
  std::shared_ptr<Upload> upload = {};  // to a GPU

  Quantize form_of(const std::string& layer) const;
  Wanted wanted_of(const std::string& layer, at::IntArrayRef shape) const;
  void has_read(const BytesRead& read) const;
  void has_passed(std::int64_t bytes) const;
};

Quantize Weights::Load::form_of(const std::string& layer) const {
  const auto& dense = options.keep_dense;
  const bool stays = std::any_of(dense.begin(), dense.end(), [&](const std::string& pattern) {
    return matches(pattern, layer);
  });
  return stays ? Quantize::kNone : options.quantize;
}

// This rank's share of a tensor of `layer`. A row-parallel layer's vector, its bias, is whole: it
// belongs to the sum.
Wanted Weights::Load::wanted_of(const std::string& layer, at::IntArrayRef shape) const {
  const auto rows = shape.empty() ? 1 : shape[0];
  const auto& group = options.tensor_parallel;
  const auto* const sharding = find_sharding(shardings, layer);
  if (!sharding || group.size() == 1) return {.rows = {{.begin = 0, .count = rows}}, .columns = {}};
  const auto share = [&](std::int64_t total) {
    return shares_of(*sharding, total, group.rank(), group.size(), layer);
  };
  if (sharding->split == Split::kColumns) return {.rows = share(rows), .columns = {}};
  return {.rows = {{.begin = 0, .count = rows}},
          .columns = shape.size() < 2 ? std::vector<Share>() : share(shape[1])};
}

void Weights::Load::has_read(const BytesRead& read) const {
  if (options.on_read) options.on_read(read);
  has_passed(read.all);
}

void Weights::Load::has_passed(std::int64_t bytes) const {
  if (options.on_bytes) options.on_bytes(bytes);
}

Weights::Weights(std::shared_ptr<TensorSource> source, LoadOptions options, ShardingTable shardings)
    : load_(std::make_shared<Load>(Load{std::move(options), std::move(shardings)})),
      source_(std::move(source)),
      dtype_(load_->options.dtype) {
  if (!device().is_cpu()) load_->upload = std::make_shared<Upload>(device());
  if (load_->options.paging.pages) *this = paged(PageLevel::kModel, source_->name());
}

Weights::Weights(Checkpoint checkpoint, Names names, LoadOptions options, ShardingTable shardings)
    : Weights(stored_tensors(std::move(checkpoint), std::move(names)), std::move(options),
              std::move(shardings)) {}

Weights Weights::synthetic(LoadOptions options, ShardingTable shardings) {
  return {synthetic_tensors(), std::move(options), std::move(shardings)};
}

Weights Weights::operator/(std::string_view child) const {
  auto inner = *this;
  inner.scope_ = path(child);
  return inner;
}

Weights Weights::operator/(std::int64_t index) const { return *this / std::to_string(index); }

Weights Weights::as(at::ScalarType dtype) const {
  auto other = *this;
  other.dtype_ = dtype;
  return other;
}

Weights Weights::paged(PageLevel level, const std::string& name, int blocks) const {
  auto inner = *this;
  inner.page_ = {};
  const auto& paging = load_->options.paging;
  if (!paging.pages || paging.level != level) return inner;
  const auto group = path(name) + (use_ == PageUse::kOnce ? " (once)" : "");
  inner.page_ = Page(paging.pages, paging.pages->add_group(group, use_, blocks));
  inner.goes_to_page_ = true;
  return inner;
}

std::int64_t Weights::blocks_per_page() const {
  const auto& paging = load_->options.paging;
  return paging.pages && paging.level == PageLevel::kBlock ? paging.blocks : 1;
}

// Delivers to the device or to a page, which builds it on closing unless it is on disk.
Matrix Weights::delivered(const Recipe& recipe) const {
  const auto& options = load_->options;
  if (!goes_to_page_ && options.device.is_cpu() && recipe.in_place) {
    const auto view = recipe.in_place();
    load_->has_read({.all = recipe.bytes});
    return {.values_NC = view};
  }
  if (!goes_to_page_) {
    const Target target(options.device, load_->upload.get());
    const auto made = recipe.make(target);
    load_->has_read(made.read);
    return map_tensors(made.matrix, [&](const Tensor& x) { return moved(x, target); });
  }
  const auto make = [recipe, keep = source_, on_read = options.on_read] {
    const auto made = recipe.make(at::kCPU);
    if (on_read) on_read(made.read);
    std::vector<Tensor> tensors;
    for_each_tensor(made.matrix, [&](const Tensor& tensor) { tensors.push_back(tensor); });
    return tensors;
  };
  const auto done = [bytes = recipe.bytes, on_bytes = options.on_bytes] {
    if (on_bytes) on_bytes(bytes);
  };
  const auto views = options.paging.pages->add(
      {.tensors = recipe.tensors, .identity = recipe.identity, .make = make, .done = done});
  return {.form = recipe.form,
          .values_NC = views[0],
          .scales_N1 = views.size() > 1 ? views[1] : Tensor(),
          .coding = recipe.coding};
}

// Unread tensors need no pages.
Weights Weights::unread_from(std::shared_ptr<TensorSource> source) const {
  auto other = *this;
  other.load_ = std::make_shared<Load>(*load_);
  other.load_->options.paging = {};
  other.goes_to_page_ = false;
  other.page_ = {};
  other.source_ = std::move(source);
  return other;
}

Weights Weights::unread() const { return unread_from(unread_tensors(source_)); }

Weights Weights::once() const {
  auto other = *this;
  other.use_ = PageUse::kOnce;
  return other;
}

Weights Weights::surveyed(std::vector<AskedTensor>& asked) const {
  return unread_from(surveyed_tensors(source_, asked));
}

std::string Weights::path(std::string_view name) const {
  return scope_.empty() ? std::string(name) : scope_ + "." + std::string(name);
}

std::optional<Recipe> Weights::find(std::string_view name, at::IntArrayRef shape,
                                    AskedTensor::Kind kind) const {
  AskedTensor asked{scope_, std::string(name), shape.vec(), dtype_, kind, use_};
  return source_->find(asked, {.wanted = load_->wanted_of(scope_, shape),
                               .numbers = load_->form_of(scope_),
                               .codes = load_->options.quantize,
                               .packed = load_->options.packed});
}

Tensor Weights::tensor(std::string_view name, at::IntArrayRef shape) const {
  const auto recipe = find(name, shape, AskedTensor::Kind::kNumbers);
  return recipe ? delivered(*recipe).values_NC : Tensor();
}

Matrix Weights::matrix(std::string_view name, at::IntArrayRef shape) const {
  const auto recipe = find(name, shape, AskedTensor::Kind::kMatrix);
  if (!recipe) return {};
  auto matrix = delivered(*recipe);
  matrix.low_rank = recipe->low_rank;
  return matrix;
}

Tensor Weights::table(std::string_view name, at::IntArrayRef shape) const {
  const auto recipe = find(name, shape, AskedTensor::Kind::kTable);
  if (!recipe) return {};
  load_->has_read({.all = recipe->bytes});
  return recipe->in_place ? recipe->in_place() : recipe->make(at::kCPU).matrix.values_NC;
}

at::Device Weights::device() const { return load_->options.device; }
bool Weights::wants_unused() const { return load_->options.wants_unused; }

Weights Weights::on_second_stream() const {
  auto other = *this;
  other.is_on_second_stream_ = second_stream().has_value();
  return other;
}

const std::optional<c10::Stream>& Weights::second_stream() const {
  return load_->options.second_stream;
}

std::shared_ptr<Scratch> Weights::scratch() const {
  return is_on_second_stream_ ? load_->second_scratch : load_->scratch;
}

Outputs Weights::outputs() const {
  const auto& group = load_->options.tensor_parallel;
  const auto* const sharding = find_sharding(load_->shardings, scope_);
  if (!sharding || group.size() == 1) return {};
  return {.are = sharding->outputs, .group = group};
}

void Weights::skip() const { load_->has_passed(source_->skip(scope_)); }

void Weights::finish() const { load_->has_passed(source_->finish()); }

}  // namespace braid
