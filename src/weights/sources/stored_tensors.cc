#include <algorithm>
#include <set>

#include "base/error.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/int8.h"
#include "weights/codes/rotation.h"
#include "weights/files/other_codings.h"
#include "weights/files/scaled_weights.h"
#include "weights/sources/expected.h"
#include "weights/sources/source.h"

namespace braid {
namespace {

// Drops extents of 1.
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

// Whether a table may be used where it is stored: rows that are never looked up are never read.
bool may_stay_there(const StoredRows& from) {
  const auto& first = *from.tensors.front();
  const bool is_in_order =
      from.order.way == RowOrder::kAsStored || from.order.way == RowOrder::kFlattened;
  return from.tensors.size() == 1 && is_in_order && !first.is_quantized() && first.is_aligned();
}

// Whether codes of float8 are as Braid quantizes. Every share is kept as stored, or none is.
bool are_float8_codes(const StoredRows& from) {
  return from.tensors.front()->entry.type == ElementType::kFloat8E4M3 && can_stay_as_stored(from) &&
         std::any_of(from.tensors.begin(), from.tensors.end(),
                     [](const auto& stored) { return stored->scales != nullptr; });
}

// Whether a matrix stays in the form of its file.
bool stays_as_stored(const TensorRequest& request, const StoredRows& from) {
  const auto form = request.form_of_numbers();
  if (form == Quantize::kFloat8) return are_float8_codes(from);
  return form == Quantize::kNone && request.stored_codes == StoredCodes::kKept &&
         can_stay_as_stored(from);
}

bool stays_rotated(const TensorRequest& request, const StoredRows& from) {
  return request.stored_codes != StoredCodes::kWidened && can_stay_rotated(from);
}

// The version of torchao's codes that has such scales.
Quantize form_of_scales(const StoredRows& scales) {
  return dtype_of_scales(scales) == at::kFloat ? Quantize::kInt8 : Quantize::kInt8V1;
}

// The tensor whose codes one of this name scales or describes; empty for other names.
std::string described_by(const std::string& name) {
  for (const std::string_view ending :
       {"_scale", "_scale_2", "_scale_inv", ".scale_weight", ".comfy_quant"})
    if (name.ends_with(ending)) {
      const auto of = name.substr(0, name.size() - ending.size());
      return ending.starts_with('.') ? of + ".weight" : of;
    }
  return {};
}

class StoredTensors : public TensorSource {
 public:
  StoredTensors(Checkpoint checkpoint, Names names)
      : checkpoint_(std::move(checkpoint)), names_(std::move(names)) {}

  const std::string& name() const override { return checkpoint_.source(); }

  std::optional<TensorPlan> find(const TensorRequest& request) override;

  // Skips the names that files have, too: "quant_conv" is "conv1" in Wan's own.
  std::int64_t skip(const std::string& scope) override {
    std::vector<std::string> patterns = {names_.prefix + scope + ".**"};
    for (const auto& rule : names_.spellings)
      if (rule.name == scope || rule.name.starts_with(scope + "."))
        for (const auto& stored : rule.stored) patterns.push_back(names_.prefix + stored + ".**");
    return leave([&](const std::string& name) { return matches_any(patterns, name); });
  }

  std::int64_t finish() override {
    const auto bytes = leave([&](const std::string& name) { return may_be_ignored(name); });
    check_all_used();
    return bytes;
  }

 private:
  enum class Codes { kKept, kDecoded };
  StoredRows take(const std::string& path, at::IntArrayRef shape, Codes codes);
  StoredRows take_scales(const TensorRequest& request);
  template <class MayBeUnused>
  std::int64_t leave(MayBeUnused may_be_unused);
  bool may_be_ignored(const std::string& name) const;
  void check_all_used() const;
  const StoredTensor* numbers_described_by(const std::string& tensor) const;
  void refuse_if_absent(const std::string& tensor) const;

  StoredTensor stored_as(const std::string& tensor, at::IntArrayRef shape,
                         const RowOrder& order) const;
  void check_has_scales(const std::string& codes) const;
  void join_scales(const std::string& tensor, StoredTensor& stored);

  const Checkpoint checkpoint_;
  const Names names_;
  std::set<std::string> used_;
};

std::optional<TensorPlan> StoredTensors::find(const TensorRequest& request) {
  const auto codes = request.is_matrix() ? Codes::kKept : Codes::kDecoded;
  TensorPlan plan{.from = take(request.path(), request.shape, codes),
                  .shape = request.shape,
                  .shard = request.shard,
                  .dtype = request.dtype};
  const auto& from = plan.stored();
  const bool has_codes = request.is_matrix() && are_codes(from.tensors);
  if (!has_codes) check_floating(from.tensors, name());
  check_shape(from.tensors, request.shape, name());
  if (has_codes) {
    plan.take = TensorPlan::Take::kCodes;
    plan.scales = take_scales(request);
    plan.form = form_of_codes(form_of_scales(plan.scales), request.quantize);
  } else if (request.is_matrix() && stays_rotated(request, from)) {
    plan.take = TensorPlan::Take::kStored;
    plan.form = form_of_rotated(request.quantize);
  } else if (request.is_matrix()) {
    plan.form = request.form_of_numbers();
    if (stays_as_stored(request, from)) plan.take = TensorPlan::Take::kStored;
  } else if (request.kind == TensorRequest::Kind::kTable && may_stay_there(from)) {
    plan.dtype = from.tensors.front()->dtype();
  }
  return plan;
}

StoredRows StoredTensors::take(const std::string& path, at::IntArrayRef shape, Codes codes) {
  const auto origins = origins_of(names_, path);
  const auto there = [&](const std::string& name) { return checkpoint_.find(name) != nullptr; };
  const auto origin = std::find_if(origins.begin(), origins.end(), [&](const Origin& o) {
    return std::all_of(o.tensors.begin(), o.tensors.end(), there);
  });
  if (origin == origins.end()) {
    const auto& wanted = origins.front().tensors;
    const auto missing = std::find_if_not(wanted.begin(), wanted.end(), there);
    refuse_if_absent(*missing);
    throw InputError(text_of(name(), " has no tensor '", *missing, "'"));
  }
  std::vector<StoredTensor> stored;
  for (const auto& tensor : origin->tensors) {
    check(used_.insert(tensor).second, name(), ": tensor '", tensor, "' is used twice");
    stored.push_back(stored_as(tensor, shape, origin->order));
    if (holds_codes(stored.back())) check_has_scales(tensor);
  }
  // only matrices stay codes, and not if some of the tensors they are joined with are none
  if (codes == Codes::kDecoded || !std::all_of(stored.begin(), stored.end(), holds_codes))
    for (std::size_t i = 0; i < stored.size(); ++i) join_scales(origin->tensors[i], stored[i]);
  StoredRows rows{.tensors = {}, .order = origin->order};
  for (auto& one : stored)
    rows.tensors.push_back(std::make_shared<const StoredTensor>(std::move(one)));
  return rows;
}

void StoredTensors::check_has_scales(const std::string& codes) const {
  const auto scales = codes + "_scale";
  if (checkpoint_.find(scales) || !codes.ends_with("weight")) return;
  refuse_if_absent(scales);
  throw InputError(text_of(name(), ": tensor '", codes, "' is stored as I8 codes without a scale ",
                           "per row, '", scales, "', which Braid cannot read: ", kFilesToTake));
}

void StoredTensors::join_scales(const std::string& tensor, StoredTensor& stored) {
  const auto name = tensor + "_scale";
  const auto* const scales = holds_codes(stored) ? checkpoint_.find(name) : nullptr;
  if (!scales) return;
  used_.insert(name);
  stored.scales = scale_of(*scales, stored);
}

// Shapes may differ by extents of 1, which writers add or drop: [D] for [1, D], and a convolution
// of single pixels for a matrix. Codes keep their rows.
StoredTensor StoredTensors::stored_as(const std::string& tensor, at::IntArrayRef shape,
                                      const RowOrder& order) const {
  auto stored = *checkpoint_.find(tensor);
  const auto& has = stored.entry.shape;
  const auto wanted = shape_as_rows(has, shape);
  const bool is_flat = order.way == RowOrder::kFlattened && has.size() == 1 &&
                       !stored.is_quantized() && c10::multiply_integers(shape) == has.front();
  if (wanted == has || (!is_flat && essential(wanted) != essential(has))) return stored;
  const bool is_pixel = shape.size() == 2 && has.size() == 4 && has[2] == 1 && has[3] == 1;
  const bool has_same_rows = !stored.scales && !has.empty() && has.back() == wanted.back();
  if (stored.is_quantized() && !is_pixel && !has_same_rows) return stored;
  stored.entry.shape = wanted;
  return stored;
}

// The separate scales of codes.
StoredRows StoredTensors::take_scales(const TensorRequest& request) {
  const std::vector<std::int64_t> shape = {request.shape.front(), 1};
  auto scales = take(request.path() + "_scale", shape, Codes::kDecoded);
  check_floating(scales.tensors, name());
  check_shape(scales.tensors, shape, name());
  return scales;
}

template <class MayBeUnused>
std::int64_t StoredTensors::leave(MayBeUnused may_be_unused) {
  std::int64_t bytes = 0;
  for (const auto& [name, stored] : checkpoint_.tensors())
    if (may_be_unused(name) && used_.insert(name).second) bytes += std::int64_t(stored.entry.size);
  for (const auto& [name, shard] : checkpoint_.absent())
    if (may_be_unused(name)) used_.insert(name);
  return bytes;
}

// Scales are ignored with their codes.
bool StoredTensors::may_be_ignored(const std::string& name) const {
  constexpr std::string_view kScale = "_scale";
  const auto size = name.size() - (name.ends_with(kScale) ? kScale.size() : 0);
  return matches_any(names_.ignored, name) || matches_any(names_.ignored, name.substr(0, size));
}

// A file that its index promises more tensors of is not whole.
void StoredTensors::refuse_if_absent(const std::string& tensor) const {
  const auto it = checkpoint_.absent().find(tensor);
  if (it == checkpoint_.absent().end()) return;
  throw InputError(text_of(name(), ": tensor '", tensor, "' is not in ", it->second));
}

// The tensor that this one should scale or describe, if it needs no decoding. ComfyUI rounds such
// numbers to float8 before it scales them, which no writer can have meant: they are refused.
const StoredTensor* StoredTensors::numbers_described_by(const std::string& tensor) const {
  const auto described = described_by(tensor);
  const auto* const stored = described.empty() ? nullptr : checkpoint_.find(described);
  const bool are_numbers = stored && stored->is_readable() && !stored->is_quantized() &&
                           at::isFloatingType(stored->dtype()) &&
                           c10::elementSize(stored->dtype()) > 1;
  return are_numbers ? stored : nullptr;
}

void StoredTensors::check_all_used() const {
  for (const auto& [tensor, shard] : checkpoint_.absent())
    if (!used_.contains(tensor)) refuse_if_absent(tensor);
  std::vector<std::string> unknown;
  for (const auto& [name, stored] : checkpoint_.tensors())
    if (!used_.contains(name)) unknown.push_back(name);
  if (unknown.empty()) return;
  if (std::ranges::all_of(unknown, [&](const auto& one) { return numbers_described_by(one); })) {
    const auto& first = unknown.front();
    throw InputError(text_of(name(), ": tensor '", first, "' should be the scale of codes in '",
                             described_by(first), "', which holds ",
                             element_type_name(numbers_described_by(first)->entry.type)));
  }
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
