#include "weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "weights/expected.h"
#include "weights/int8.h"
#include "weights/int8_load.h"
#include "weights/synthetic.h"

namespace braid {

// What the scopes of one load share.
struct Weights::Load {
  Checkpoint checkpoint;
  Names names;
  LoadOptions options;
  Plan plan;
  std::set<std::string> used = {};
  std::shared_ptr<Scratch> scratch = std::make_shared<Scratch>();
  std::optional<SyntheticValues> synthetic = {};

  std::vector<const StoredTensor*> take(const std::string& path, Order& order);
  Quantize form_of(const std::string& layer) const;
  struct Scales {
    std::vector<const StoredTensor*> parts = {};
    Order order = Order::kAsStored;
  };
  Scales scales_of(const std::vector<const StoredTensor*>& codes, const std::string& path);
  LoadedMatrix codes_of(const std::vector<Piece>& codes, const Scales& scales,
                        const Wanted& wanted) const;
  Wanted wanted_of(const std::string& layer, at::IntArrayRef shape) const;
  void has_read(const BytesRead& read) const {
    if (options.on_read) options.on_read(read);
    has_passed(read.all);
  }
  void has_passed(std::int64_t bytes) const {
    if (options.on_bytes) options.on_bytes(bytes);
  }
};

std::vector<const StoredTensor*> Weights::Load::take(const std::string& path, Order& order) {
  const auto origins = origins_of(names, path);
  const auto there = [&](const std::string& name) { return checkpoint.find(name) != nullptr; };
  const auto origin = std::find_if(origins.begin(), origins.end(), [&](const Origin& o) {
    return std::all_of(o.tensors.begin(), o.tensors.end(), there);
  });
  if (origin == origins.end()) {
    const auto& names_ = origins.front().tensors;
    const auto missing = std::find_if_not(names_.begin(), names_.end(), there);
    throw InputError(text_of(checkpoint.source(), " has no tensor '", *missing, "'"));
  }
  order = origin->order;
  std::vector<const StoredTensor*> parts;
  for (const auto& name : origin->tensors) {
    check(used.insert(name).second, checkpoint.source(), ": tensor '", name, "' is used twice");
    parts.push_back(checkpoint.find(name));
  }
  return parts;
}

// What this rank holds of a tensor of the layer `layer`. Vectors of a row-parallel layer, its bias,
// are whole: they belong to the sum.
Wanted Weights::Load::wanted_of(const std::string& layer, at::IntArrayRef shape) const {
  const auto rows = shape.empty() ? 1 : shape[0];
  const auto& group = options.tensor_parallel;
  const auto* const sharding = find_sharding(plan, layer);
  if (!sharding || group.size() == 1) return {.rows = {{.begin = 0, .count = rows}}, .columns = {}};
  const auto share = [&](std::int64_t total) {
    return shares_of(*sharding, total, group.rank(), group.size(), layer);
  };
  const bool by_rows = sharding->split == Split::kRows || sharding->split == Split::kRowsUnsummed;
  if (!by_rows) return {.rows = share(rows), .columns = {}};
  return {.rows = {{.begin = 0, .count = rows}},
          .columns = shape.size() < 2 ? std::vector<Share>() : share(shape[1])};
}

Weights::Weights(Checkpoint checkpoint, Names names, LoadOptions options, Plan plan)
    : load_(std::make_shared<Load>(
          Load{std::move(checkpoint), std::move(names), std::move(options), std::move(plan)})),
      dtype_(load_->options.dtype) {
  if (load_->options.paging.pages) *this = paged(PageLevel::kModel, load_->checkpoint.source());
}

Weights Weights::synthetic(LoadOptions options, Plan plan) {
  Weights weights(Checkpoint::none("synthetic weights"), {}, std::move(options), std::move(plan));
  weights.load_->synthetic.emplace();
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
bool Weights::noted(std::string_view name, at::IntArrayRef shape, AskedTensor::Kind kind) const {
  auto* const survey = load_->options.survey;
  if (survey) survey->push_back({scope_, std::string(name), shape.vec(), dtype_, kind});
  return survey != nullptr;
}

// From the host to where it belongs.
Tensor Weights::delivered(const Tensor& tensor) const {
  const auto& options = load_->options;
  return goes_to_page_ ? options.paging.pages->add(tensor) : tensor.to(options.device);
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
  if (load_->synthetic) return synthetic_share(name, shape);
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  if (noted(name, shape, AskedTensor::Kind::kNumbers)) return {};
  return load(parts, order, shape);
}

Tensor Weights::load(const std::vector<const StoredTensor*>& parts, Order order,
                     at::IntArrayRef shape) const {
  check_floating(parts, load_->checkpoint.source());
  check_shape(parts, shape, load_->checkpoint.source());
  const auto wanted = load_->wanted_of(scope_, shape);
  if (!is_read_) return {};
  const auto pieces = pieces_of(parts, order, wanted.rows);
  const auto device = goes_to_page_ ? at::Device(at::kCPU) : load_->options.device;
  const auto usable = [&](const Piece& piece) {
    return piece.stored->dtype() == dtype_ && piece.stored->is_aligned();
  };
  const bool in_place = device.is_cpu() && !goes_to_page_ && pieces.size() == 1 &&
                        wanted.columns.empty() && usable(pieces.front());
  if (in_place) {
    auto view = view_of(pieces.front());
    load_->has_read({.all = view.numel() * view.element_size()});
    return view;
  }
  const auto made = assemble(pieces, wanted.columns, at::TensorOptions(dtype_).device(device));
  load_->has_read(made.read);
  return delivered(made.tensor);
}

Quantize Weights::Load::form_of(const std::string& layer) const {
  const auto& dense = options.keep_dense;
  const bool stays = std::any_of(dense.begin(), dense.end(), [&](const std::string& pattern) {
    return matches(pattern, layer);
  });
  return stays ? Quantize::kNone : options.quantize;
}

// The scales that stand beside codes.
Weights::Load::Scales Weights::Load::scales_of(const std::vector<const StoredTensor*>& codes,
                                               const std::string& path) {
  Scales scales;
  scales.parts = take(path + "_scale", scales.order);
  std::int64_t rows = 0;
  for (const auto* part : codes) rows += part->entry.shape[0];
  check_floating(scales.parts, checkpoint.source());
  check_shape(scales.parts, {rows, 1}, checkpoint.source());
  return scales;
}

// Scales are of whole rows: a share of the columns has all of them.
LoadedMatrix Weights::Load::codes_of(const std::vector<Piece>& codes, const Scales& scales,
                                     const Wanted& wanted) const {
  const bool is_v2 = scales.parts.front()->dtype() == at::kFloat;
  const bool is_dynamic = options.quantize == Quantize::kInt8Dynamic && is_v2;
  const auto form = is_dynamic ? Quantize::kInt8Dynamic
                    : is_v2    ? Quantize::kInt8
                               : Quantize::kInt8V1;
  return load_codes(codes, pieces_of(scales.parts, scales.order, wanted.rows), wanted.columns,
                    form);
}

Matrix Weights::matrix(std::string_view name, at::IntArrayRef shape) const {
  const auto form = load_->form_of(scope_);
  if (load_->synthetic && form == Quantize::kNone)
    return {.values_NC = synthetic_share(name, shape)};
  if (load_->synthetic) return synthetic_codes(name, shape, form);
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  const auto& source = load_->checkpoint.source();
  if (noted(name, shape, AskedTensor::Kind::kMatrix)) {
    if (are_codes(parts)) load_->take(path(name) + "_scale", order);
    return {};
  }
  const bool has_codes = are_codes(parts);
  if (!has_codes && form == Quantize::kNone) return {.values_NC = load(parts, order, shape)};
  check_shape(parts, shape, source);
  if (!has_codes) check_floating(parts, source);
  const auto wanted = load_->wanted_of(scope_, shape);
  const auto scales = has_codes ? load_->scales_of(parts, path(name)) : Load::Scales();
  if (!is_read_) return {};
  const auto pieces = pieces_of(parts, order, wanted.rows);
  const auto made = has_codes ? load_->codes_of(pieces, scales, wanted)
                              : quantize_pieces(pieces, wanted.columns, dtype_, form);
  load_->has_read(made.read);
  return map_tensors(made.matrix, [&](const Tensor& tensor) { return delivered(tensor); });
}

std::shared_ptr<Scratch> Weights::scratch() const { return load_->scratch; }

Tensor Weights::synthetic_share(std::string_view name, at::IntArrayRef shape) const {
  if (!is_read_) return {};
  return delivered(load_->synthetic->share(path(name), shape, load_->wanted_of(scope_, shape),
                                           at::TensorOptions(dtype_)));
}

Matrix Weights::synthetic_codes(std::string_view name, at::IntArrayRef shape, Quantize form) const {
  if (!is_read_) return {};
  const auto wanted = load_->wanted_of(scope_, shape);
  const auto rows = load_->synthetic->share(path(name), shape, {.rows = wanted.rows, .columns = {}},
                                            at::TensorOptions(dtype_));
  const auto codes = share_of_columns(quantize_rows(rows, form), wanted.columns);
  return map_tensors(codes, [&](const Tensor& tensor) { return delivered(tensor); });
}

Outputs Weights::outputs() const {
  const auto& group = load_->options.tensor_parallel;
  const auto* const sharding = find_sharding(load_->plan, scope_);
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
  for (const auto& [name, stored] : load_->checkpoint.tensors())
    if (name.starts_with(prefix) && load_->used.insert(name).second)
      load_->has_passed(std::int64_t(stored.entry.size));
}

void Weights::finish() const {
  std::vector<std::string> unknown;
  for (const auto& [name, stored] : load_->checkpoint.tensors()) {
    const auto& ignored = load_->names.ignored;
    const bool known = load_->used.contains(name) ||
                       std::any_of(ignored.begin(), ignored.end(),
                                   [&](const std::string& p) { return matches(p, name); });
    if (!known) unknown.push_back(name);
  }
  if (unknown.empty()) return;
  const auto count = unknown.size();
  unknown.resize(std::min<std::size_t>(count, 3));
  throw InputError(
      text_of(load_->checkpoint.source(), " holds ", count, count == 1 ? " tensor" : " tensors",
              " that the model does not have: ", list_of(unknown), count > 3 ? ", ..." : ""));
}

}  // namespace braid
