#include "weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/expected.h"
#include "weights/load.h"

namespace braid {

Weights::Weights(Checkpoint checkpoint, Names names, LoadOptions options, ShardingTable shardings)
    : load_(
          std::make_shared<Load>(Load{std::make_shared<const Checkpoint>(std::move(checkpoint)),
                                      std::move(names), std::move(options), std::move(shardings)})),
      dtype_(load_->options.dtype) {
  if (load_->options.paging.pages) *this = paged(PageLevel::kModel, load_->checkpoint->source());
}

Weights Weights::synthetic(LoadOptions options, ShardingTable shardings) {
  Weights weights(Checkpoint::none("synthetic weights"), {}, std::move(options),
                  std::move(shardings));
  weights.load_->synthetic = std::make_shared<const SyntheticValues>();
  return weights;
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

Weights Weights::paged(PageLevel level, const std::string& name) const {
  auto inner = *this;
  inner.page_ = {};
  const auto& paging = load_->options.paging;
  if (!paging.pages || paging.level != level || !is_read_) return inner;
  inner.page_ = Page(paging.pages, paging.pages->add_group(path(name)));
  inner.goes_to_page_ = true;
  return inner;
}

std::int64_t Weights::blocks_a_page() const {
  const auto& paging = load_->options.paging;
  return paging.pages && paging.level == PageLevel::kBlock ? paging.blocks : 1;
}

// Whether the load only wants to know what is asked for.
bool Weights::noted(std::string_view name, at::IntArrayRef shape, AskedTensor::Kind kind,
                    const std::vector<const StoredTensor*>& parts) const {
  auto* const survey = load_->options.survey;
  if (!survey) return false;
  survey->push_back({scope_, std::string(name), shape.vec(), dtype_, kind});
  for (const auto* part : parts) survey->back().stored.push_back(*part);
  return true;
}

// To where it belongs: a page makes it when it is closed, unless it is on the disk.
Matrix Weights::delivered(const Recipe& recipe) const {
  const auto& options = load_->options;
  if (!goes_to_page_) {
    const auto made = recipe.make(options.device);
    load_->has_read(made.read);
    return to(made.matrix, options.device, Blocking::kYes);
  }
  const auto make = [recipe, keep = load_->checkpoint, drawn = load_->synthetic,
                     on_read = options.on_read] {
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
          .scales_N1 = views.size() > 1 ? views[1] : Tensor()};
}

Weights Weights::unread() const {
  auto other = *this;
  other.is_read_ = false;
  return other;
}

std::string Weights::path(std::string_view name) const {
  return scope_.empty() ? std::string(name) : scope_ + "." + std::string(name);
}

Tensor Weights::tensor(std::string_view name, at::IntArrayRef shape) const {
  if (load_->synthetic) return synthetic_values(name, shape, AskedTensor::Kind::kNumbers).values_NC;
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  if (noted(name, shape, AskedTensor::Kind::kNumbers, parts)) return {};
  return load(parts, order, shape);
}

Tensor Weights::load(const std::vector<const StoredTensor*>& parts, Order order,
                     at::IntArrayRef shape) const {
  check_floating(parts, load_->checkpoint->source());
  check_shape(parts, shape, load_->checkpoint->source());
  const auto wanted = load_->wanted_of(scope_, shape);
  if (!is_read_) return {};
  const auto pieces = pieces_of(parts, order, wanted.rows);
  const bool in_place = load_->options.device.is_cpu() && !goes_to_page_ && pieces.size() == 1 &&
                        wanted.columns.empty() && pieces.front().stored->dtype() == dtype_ &&
                        pieces.front().stored->is_aligned();
  if (!in_place) return delivered(recipe_of_numbers({pieces, wanted.columns}, dtype_)).values_NC;
  auto view = view_of(pieces.front());
  load_->has_read({.all = view.numel() * view.element_size()});
  return view;
}

// Rows are looked up where they are stored, if they can be.
Tensor Weights::table(std::string_view name, at::IntArrayRef shape) const {
  if (load_->synthetic) {
    if (noted(name, shape, AskedTensor::Kind::kTable, {}) || !is_read_) return {};
    return load_->synthetic->share(path(name), shape, load_->wanted_of(scope_, shape), dtype_);
  }
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  if (noted(name, shape, AskedTensor::Kind::kTable, parts)) return {};
  check_floating(parts, load_->checkpoint->source());
  check_shape(parts, shape, load_->checkpoint->source());
  load_->has_read({.all = std::int64_t(parts.front()->entry.size)});
  if (parts.size() == 1 && parts.front()->is_aligned()) return parts.front()->view();
  const auto pieces = pieces_of(parts, order, {{.begin = 0, .count = shape[0]}});
  return assemble(pieces, {}, dtype_).tensor;
}

Matrix Weights::matrix(std::string_view name, at::IntArrayRef shape) const {
  if (load_->synthetic) return synthetic_values(name, shape, AskedTensor::Kind::kMatrix);
  const auto form = load_->form_of(scope_);
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  const auto& source = load_->checkpoint->source();
  if (noted(name, shape, AskedTensor::Kind::kMatrix, parts)) {
    if (!are_codes(parts)) return {};
    for (const auto* scales : load_->take(path(name) + "_scale", order))
      load_->options.survey->back().stored.push_back(*scales);
    return {};
  }
  const bool has_codes = are_codes(parts);
  if (!has_codes && form == Quantize::kNone) return {.values_NC = load(parts, order, shape)};
  check_shape(parts, shape, source);
  if (!has_codes) check_floating(parts, source);
  const auto wanted = load_->wanted_of(scope_, shape);
  const auto scales = has_codes ? load_->scales_of(parts, path(name)) : Load::Scales();
  if (!is_read_) return {};
  const Excerpt excerpt{pieces_of(parts, order, wanted.rows), wanted.columns};
  if (!has_codes) return delivered(recipe_of_quantizing(excerpt, dtype_, form));
  // scales are of whole rows: a share of the columns has all of them
  return delivered(load_->recipe_of(excerpt, pieces_of(scales.parts, scales.order, wanted.rows)));
}

at::Device Weights::device() const { return load_->options.device; }

std::shared_ptr<Scratch> Weights::scratch() const { return load_->scratch; }

Matrix Weights::synthetic_values(std::string_view name, at::IntArrayRef shape,
                                 AskedTensor::Kind kind) const {
  if (noted(name, shape, kind, {}) || !is_read_) return {};
  const auto form = kind == AskedTensor::Kind::kMatrix ? load_->form_of(scope_) : Quantize::kNone;
  return delivered(recipe_of_synthetic({.values = load_->synthetic.get(),
                                        .path = path(name),
                                        .shape = shape.vec(),
                                        .wanted = load_->wanted_of(scope_, shape),
                                        .dtype = dtype_},
                                       form));
}

Outputs Weights::outputs() const {
  const auto& group = load_->options.tensor_parallel;
  const auto* const sharding = find_sharding(load_->shardings, scope_);
  if (!sharding || group.size() == 1) return {};
  switch (sharding->split) {
    case Split::kColumns:
      return {.are = Outputs::Are::kShared, .group = group};
    case Split::kColumnsGathered:
      return {.are = Outputs::Are::kGathered, .group = group};
    case Split::kRows:
      return {.are = Outputs::Are::kSummed, .group = group};
    case Split::kRowsUnsummed:
      return {};
  }
  return {};
}

void Weights::skip() const {
  const auto prefix = load_->names.prefix + scope_ + ".";
  for (const auto& [name, stored] : load_->checkpoint->tensors())
    if (name.starts_with(prefix) && load_->used.insert(name).second)
      load_->has_passed(std::int64_t(stored.entry.size));
}

void Weights::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, stored] : load_->checkpoint->tensors()) {
    const auto& ignored = load_->names.ignored;
    const bool is_ignored = std::any_of(ignored.begin(), ignored.end(),
                                        [&](const std::string& p) { return matches(p, name); });
    if (is_ignored && load_->used.insert(name).second)
      load_->has_passed(std::int64_t(stored.entry.size));
    if (!load_->used.contains(name)) unknown.push_back(name);
  }
  if (unknown.empty()) return;
  const auto count = unknown.size();
  unknown.resize(std::min<std::size_t>(count, 3));
  throw InputError(
      text_of(load_->checkpoint->source(), " holds ", count, count == 1 ? " tensor" : " tensors",
              " that the model does not have: ", list_of(unknown), count > 3 ? ", ..." : ""));
}

}  // namespace braid
