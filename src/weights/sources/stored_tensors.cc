#include <algorithm>
#include <map>
#include <set>

#include "base/error.h"
#include "weights/sources/expected.h"
#include "weights/sources/source.h"

namespace braid {
namespace {

// Without extents of 1.
std::vector<std::int64_t> essential(at::IntArrayRef shape) {
  std::vector<std::int64_t> rest;
  for (const auto extent : shape)
    if (extent != 1) rest.push_back(extent);
  return rest;
}

// The shape that a tensor of these numbers has as the rows it gives to one of shape `asked`.
std::vector<std::int64_t> shape_as_rows(at::IntArrayRef stored, at::IntArrayRef asked) {
  auto shape = asked.vec();
  if (shape.empty()) return shape;
  const auto rest = c10::multiply_integers(asked.slice(1));
  shape[0] = rest > 0 ? c10::multiply_integers(stored) / rest : 0;
  return shape;
}

// Stored tensors that, concatenated row-wise, form one of ours.
struct Parts {
  std::vector<const StoredTensor*> stored;
  Order order = {};
};

// A tensor that ranks do not divide may be used where it is stored. A table for look-ups then stays
// there, and rows never looked up are never read.
std::function<Tensor()> place_of(const Excerpt& from, const AskedTensor& asked) {
  const auto& piece = from.pieces.front();
  const bool is_apart = from.pieces.size() > 1 || !from.columns.empty();
  if (is_apart || piece.stored->is_quantized() || !piece.stored->is_aligned()) return {};
  if (asked.kind == AskedTensor::Kind::kTable) return [piece] { return piece.stored->view(); };
  if (piece.stored->dtype() != asked.dtype) return {};
  return [piece] { return view_of(piece); };
}

// Only codes with float32 scales (version 2) support 8-bit activations.
Quantize form_of_codes(const StoredTensor& scales, Quantize wanted) {
  if (scales.dtype() != at::kFloat) return Quantize::kInt8V1;
  return wanted == Quantize::kInt8Dynamic ? Quantize::kInt8Dynamic : Quantize::kInt8;
}

class StoredTensors : public TensorSource {
 public:
  StoredTensors(Checkpoint checkpoint, Names names)
      : checkpoint_(std::move(checkpoint)), names_(std::move(names)) {}

  const std::string& name() const override { return checkpoint_.source(); }

  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override {
    const auto& [wanted, numbers, codes, packed] = delivery;
    const bool is_matrix = asked.kind == AskedTensor::Kind::kMatrix;
    const auto parts = take(asked.path(), asked.shape, asked);
    const bool has_codes = is_matrix && are_codes(parts.stored);
    if (!has_codes) check_floating(parts.stored, name());
    check_shape(parts.stored, asked.shape, name());
    const Excerpt from{pieces_of(parts.stored, parts.order, wanted.rows), wanted.columns};
    if (has_codes) {
      const auto scales = take_scales(asked);
      const auto form = form_of_codes(*scales.stored.front(), codes);
      // scales of whole rows: every share of the columns needs them all
      return recipe_of_codes(from, pieces_of(scales.stored, scales.order, wanted.rows), form);
    }
    if (is_matrix && numbers == Quantize::kFloat8) {
      const auto whole = pieces_of(parts.stored, parts.order, {{0, asked.shape.front()}});
      if (auto stored = recipe_of_float8(from, whole)) return stored;
    }
    if (is_matrix && numbers != Quantize::kNone)
      return recipe_of_quantizing(from, asked.dtype, numbers);
    if (is_matrix && packed == PackedWeights::kKept)
      if (auto kept = recipe_of_stored(from)) return kept;
    auto recipe = recipe_of_numbers(from, asked.dtype);
    recipe.in_place = place_of(from, asked);
    return recipe;
  }

  std::int64_t skip(const std::string& scope) override {
    const auto prefix = names_.prefix + scope + ".";
    return leave([&](const std::string& name) { return name.starts_with(prefix); });
  }

  std::int64_t finish() override {
    const auto bytes = leave([&](const std::string& name) {
      return std::any_of(names_.ignored.begin(), names_.ignored.end(),
                         [&](const std::string& pattern) { return matches(pattern, name); });
    });
    check_all_used();
    return bytes;
  }

 private:
  Parts take(const std::string& path, at::IntArrayRef shape, AskedTensor& asked);
  Parts take_scales(AskedTensor& asked);
  template <class MayBeUnused>
  std::int64_t leave(MayBeUnused may_be_unused);
  void check_all_used() const;

  const StoredTensor* stored_as(const std::string& tensor, at::IntArrayRef shape,
                                const Order& order);
  const StoredTensor* with_scales(const std::string& tensor, const StoredTensor* stored);

  const Checkpoint checkpoint_;
  // Tensors of another shape than in the file, and codes joined with tensors that are not codes.
  std::map<std::string, StoredTensor> reshaped_;
  const Names names_;
  std::set<std::string> used_;
};

Parts StoredTensors::take(const std::string& path, at::IntArrayRef shape, AskedTensor& asked) {
  const auto origins = origins_of(names_, path);
  const auto there = [&](const std::string& name) { return checkpoint_.find(name) != nullptr; };
  const auto origin = std::find_if(origins.begin(), origins.end(), [&](const Origin& o) {
    return std::all_of(o.tensors.begin(), o.tensors.end(), there);
  });
  if (origin == origins.end()) {
    const auto& wanted = origins.front().tensors;
    const auto missing = std::find_if_not(wanted.begin(), wanted.end(), there);
    throw InputError(text_of(name(), " has no tensor '", *missing, "'"));
  }
  Parts parts{.stored = {}, .order = origin->order};
  for (const auto& tensor : origin->tensors) {
    check(used_.insert(tensor).second, name(), ": tensor '", tensor, "' is used twice");
    parts.stored.push_back(stored_as(tensor, shape, origin->order));
  }
  if (!are_codes(parts.stored))
    for (std::size_t i = 0; i < parts.stored.size(); ++i)
      parts.stored[i] = with_scales(origin->tensors[i], parts.stored[i]);
  for (const auto* stored : parts.stored) asked.stored.push_back(*stored);
  return parts;
}

// Codes are decoded if some of the tensors they are joined with are not codes.
const StoredTensor* StoredTensors::with_scales(const std::string& tensor,
                                               const StoredTensor* stored) {
  const auto name = tensor + "_scale";
  const auto* const scales = are_codes({stored}) ? checkpoint_.find(name) : nullptr;
  if (!scales) return stored;
  used_.insert(name);
  auto numbers = *stored;
  numbers.scales = std::make_shared<const StoredTensor>(*scales);
  return &reshaped_.insert_or_assign(tensor, std::move(numbers)).first->second;
}

// Shapes may differ by extents of 1, which writers add or drop: [D] for [1, D], and a convolution
// of single pixels for a matrix. Codes keep their rows.
const StoredTensor* StoredTensors::stored_as(const std::string& tensor, at::IntArrayRef shape,
                                             const Order& order) {
  const auto* const stored = checkpoint_.find(tensor);
  const auto& has = stored->entry.shape;
  const auto wanted = shape_as_rows(has, shape);
  const bool is_flat = order.way == Order::kFlattened && has.size() == 1 &&
                       !stored->is_quantized() && c10::multiply_integers(shape) == has.front();
  if (wanted == has || (!is_flat && essential(wanted) != essential(has))) return stored;
  const bool is_pixel = shape.size() == 2 && has.size() == 4 && has[2] == 1 && has[3] == 1;
  const bool has_same_rows = !stored->scales && !has.empty() && has.back() == wanted.back();
  if (stored->is_quantized() && !is_pixel && !has_same_rows) return stored;
  auto reshaped = *stored;
  reshaped.entry.shape = wanted;
  return &reshaped_.insert_or_assign(tensor, std::move(reshaped)).first->second;
}

// The separate scales of codes.
Parts StoredTensors::take_scales(AskedTensor& asked) {
  const std::vector<std::int64_t> shape = {asked.shape.front(), 1};
  auto scales = take(asked.path() + "_scale", shape, asked);
  check_floating(scales.stored, name());
  check_shape(scales.stored, shape, name());
  return scales;
}

template <class MayBeUnused>
std::int64_t StoredTensors::leave(MayBeUnused may_be_unused) {
  std::int64_t bytes = 0;
  for (const auto& [name, stored] : checkpoint_.tensors())
    if (may_be_unused(name) && used_.insert(name).second) bytes += std::int64_t(stored.entry.size);
  return bytes;
}

void StoredTensors::check_all_used() const {
  std::vector<std::string> unknown;
  for (const auto& [name, stored] : checkpoint_.tensors())
    if (!used_.contains(name)) unknown.push_back(name);
  if (unknown.empty()) return;
  const auto count = unknown.size();
  unknown.resize(std::min<std::size_t>(count, 3));
  throw InputError(text_of(name(), " holds ", count, count == 1 ? " tensor" : " tensors",
                           " that the model does not have: ", list_of(unknown),
                           count > 3 ? ", ..." : ""));
}

}  // namespace

std::shared_ptr<TensorSource> stored_tensors(Checkpoint checkpoint, Names names) {
  return std::make_shared<StoredTensors>(std::move(checkpoint), std::move(names));
}

}  // namespace braid
