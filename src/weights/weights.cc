#include "weights/weights.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <numeric>
#include <set>

#include "base/error.h"

namespace braid {

// What the scopes of one load share.
struct Weights::Load {
  Checkpoint checkpoint;
  Names names;
  LoadOptions options;
  std::set<std::string> used = {};

  std::vector<const StoredTensor*> take(const std::string& path, Order& order);
  void told(const StoredTensor& stored) const {
    if (options.on_bytes) options.on_bytes(std::int64_t(stored.entry.size));
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

// One new tensor of all the parts' rows, converted on the way. The pages that were read are given
// back, so that no part is in memory twice.
Tensor gather(const std::vector<const StoredTensor*>& parts, at::IntArrayRef shape, Order order,
              const at::TensorOptions& options) {
  auto whole = at::empty(shape, options);
  const auto halves = order == Order::kSwapHalves ? shape[0] / 2 : 0;
  std::int64_t row = 0;
  for (const auto* part : parts) {
    const auto view = part->view();
    if (whole.dim() == 0) {
      whole.copy_(view);
    } else if (halves > 0) {
      whole.narrow(0, 0, halves).copy_(view.narrow(0, halves, halves));
      whole.narrow(0, halves, halves).copy_(view.narrow(0, 0, halves));
    } else {
      whole.narrow(0, row, view.size(0)).copy_(view);
      row += view.size(0);
    }
    part->file->release(part->entry.begin, part->entry.size);
  }
  return whole;
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

Weights::Weights(Checkpoint checkpoint, Names names, LoadOptions options)
    : load_(std::make_shared<Load>(
          Load{std::move(checkpoint), std::move(names), std::move(options)})),
      dtype_(load_->options.dtype) {}

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

std::string Weights::path(std::string_view name) const {
  return scope_.empty() ? std::string(name) : scope_ + "." + std::string(name);
}

Tensor Weights::tensor(std::string_view name, at::IntArrayRef shape) const {
  auto order = Order::kAsStored;
  const auto parts = load_->take(path(name), order);
  check_shape(parts, shape, load_->checkpoint.source());
  const auto& first = *parts.front();
  const auto device = load_->options.device;
  const bool in_place = parts.size() == 1 && order == Order::kAsStored && device.is_cpu() &&
                        first.dtype() == dtype_ && first.is_aligned();
  Tensor result;
  if (in_place) {
    first.file->prefetch(first.entry.begin, first.entry.size);
    result = first.view();
  } else {
    result = gather(parts, shape, order, at::TensorOptions(dtype_).device(device));
  }
  for (const auto* part : parts) load_->told(*part);
  return result;
}

void Weights::skip() const {
  const auto prefix = load_->names.prefix + scope_ + ".";
  for (const auto& [name, stored] : load_->checkpoint.tensors())
    if (name.starts_with(prefix) && load_->used.insert(name).second) load_->told(stored);
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
