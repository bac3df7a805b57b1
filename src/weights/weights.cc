#include "weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>

#include "base/error.h"
#include "weights/synthetic.h"

namespace braid {

// What the scopes of one load share.
struct Weights::Load {
  Checkpoint checkpoint;
  Names names;
  LoadOptions options;
  Plan plan;
  std::set<std::string> used = {};
  std::optional<SyntheticValues> synthetic = {};

  std::vector<const StoredTensor*> take(const std::string& path, Order& order);
  Wanted wanted_of(const std::string& layer, at::IntArrayRef shape) const;
  void has_read(const BytesRead& read) const {
    if (options.on_read) options.on_read(read);
    has_passed(read.all);
  }
  void has_passed(std::int64_t bytes) const {
    if (options.on_bytes) options.on_bytes(bytes);
  }
};

namespace {

std::string list_of(const std::vector<std::string>& names) {
  std::string list;
  for (const auto& name : names) list += (list.empty() ? "'" : ", '") + name + "'";
  return list;
}

// The stored tensors have the rows of `shape` between them, and agree on the rest.
void check_shape(const std::vector<const StoredTensor*>& parts, at::IntArrayRef shape,
                 const std::string& source) {
  std::int64_t rows = 0;
  std::vector<std::string> names;
  for (const auto* part : parts) {
    const at::IntArrayRef has(part->entry.shape);
    names.push_back(part->entry.name);
    require(at::isFloatingType(part->dtype()), source, ": tensor '", part->entry.name,
            "' should hold floating-point numbers, its dtype is ", name_of(part->entry.type));
    const bool agrees = has.size() == shape.size() &&
                        (shape.empty() || has.slice(1) == shape.slice(1)) &&
                        (parts.size() > 1 || has == shape);
    require(agrees, source, ": tensor '", part->entry.name, "' should have the shape ", shape,
            parts.size() > 1 ? " together with its neighbours, it has " : ", it has ", has);
    rows += has.empty() ? 1 : has[0];
  }
  require(parts.size() == 1 || rows == shape[0], source, ": the tensors ", list_of(names),
          " should have ", shape[0], " rows together, they have ", rows);
}

}  // namespace

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
      dtype_(load_->options.dtype) {}

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
  check_shape(parts, shape, load_->checkpoint.source());
  const auto wanted = load_->wanted_of(scope_, shape);
  if (!is_read_) return {};
  const auto pieces = pieces_of(parts, order, wanted.rows);
  const auto device = load_->options.device;
  const auto usable = [&](const Piece& piece) {
    return piece.stored->dtype() == dtype_ && piece.stored->is_aligned();
  };
  const bool in_place =
      device.is_cpu() && pieces.size() == 1 && wanted.columns.empty() && usable(pieces.front());
  if (in_place) {
    auto view = view_of(pieces.front());
    load_->has_read({.all = view.numel() * view.element_size()});
    return view;
  }
  auto made = assemble(pieces, wanted.columns, at::TensorOptions(dtype_).device(device));
  load_->has_read(made.read);
  return std::move(made.tensor);
}

Tensor Weights::synthetic_share(std::string_view name, at::IntArrayRef shape) const {
  if (!is_read_) return {};
  return load_->synthetic->share(path(name), shape, load_->wanted_of(scope_, shape),
                                 at::TensorOptions(dtype_).device(load_->options.device));
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
