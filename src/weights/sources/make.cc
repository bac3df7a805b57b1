// Makes the tensors of plans.
#include <ATen/ATen.h>

#include <algorithm>

#include "weights/adapters/apply.h"
#include "weights/codes/as_stored.h"
#include "weights/codes/quantized_rows.h"
#include "weights/sources/plan_reads.h"

namespace braid {
namespace {

using Take = TensorPlan::Take;

Tensor with_columns(const Tensor& x, std::int64_t columns) {
  return at::constant_pad_nd(x, {0, columns - x.size(-1)});
}

// ------------------------------------------------------------------------- numbers

Assembled numbers_read(const TensorPlan& plan, const Shard& shard, at::ScalarType dtype,
                       const Target& target) {
  if (!plan.is_drawn())
    return assemble(ranges_of(plan.stored(), shard.rows), shard.columns, dtype, target);
  const auto& drawn = std::get<DrawnRows>(plan.from);
  const auto options = at::TensorOptions(dtype).device(target.device);
  return {.tensor = drawn.values->share(drawn.path, plan.shape, shard, options), .read = {}};
}

// Drawing spreads all values each time, so that it draws more at once than is quantized.
void quantize_drawn(const TensorPlan& plan, const Target& target, QuantizedRows& rows) {
  constexpr std::int64_t kNumbersDrawnAtOnce = std::int64_t(1) << 22;
  const auto at_once = rows_at_once(kNumbersDrawnAtOnce, plan.shape[1]);
  for (const auto& run : plan.shard.rows)
    for (std::int64_t row = 0; row < run.count; row += at_once) {
      const Share some{.begin = run.begin + row, .count = std::min(at_once, run.count - row)};
      rows.add(numbers_read(plan, {.rows = {some}}, plan.dtype, target).tensor);
    }
}

BytesRead quantize_stored(const TensorPlan& plan, const Target& target, QuantizedRows& rows) {
  BytesRead read;
  const auto ranges = ranges_of(plan.stored(), plan.shard.rows);
  for (const auto& run : cut(ranges, numbers_quantized_at_once(target.device))) {
    rows.add(moved(numbers_of(run), target));
    const auto bytes = bytes_of(run);
    read.all += std::int64_t(bytes.size);
    run.stored->file->release(bytes.begin, bytes.size);
  }
  return read;
}

QuantizedRows codes_of(const TensorPlan& plan, const Target& target) {
  const auto stored = plan.stored_columns > 0 ? plan.stored_columns : plan.shape[1];
  return {{.rows = total_count(plan.shard.rows),
           .columns = plan.changes.is_empty() ? stored : plan.shape[1],
           .kept = plan.shard.columns,
           .dtype = plan.dtype},
          plan.form,
          target.device};
}

// Changes are made in float32, in rows of a matrix: a vector has one number in each. Magnitudes and
// scales of codes are of whole rows or columns, so that the shard is cut from them last.
LoadedMatrix changed(const TensorPlan& plan, const Target& target) {
  const auto shard = shard_read(plan), cut = shard_cut(plan);
  auto [base, read] = numbers_read(plan, shard, at::kFloat, target);
  if (plan.stored_columns > 0) base = with_columns(base, plan.shape[1]);
  apply(plan.changes.changes, shard, base.dim() == 2 ? base : base.view({base.size(0), -1}));
  const auto numbers = taken(base, 0, cut.rows);
  if (plan.form == Quantize::kNone)
    return {.matrix = {.values_NC = taken(numbers, 1, cut.columns).to(plan.dtype)}, .read = read};
  auto rows = codes_of(plan, target);
  const auto at_once = rows_at_once(numbers_quantized_at_once(target.device), numbers.size(1));
  for (const auto& run : numbers.split(at_once)) rows.add(run);
  return {.matrix = rows.codes(), .read = read};
}

LoadedMatrix made_of_numbers(const TensorPlan& plan, const Target& target) {
  if (!plan.changes.is_empty()) return changed(plan, target);
  if (plan.form == Quantize::kNone) {
    const auto made = numbers_read(plan, plan.shard, plan.dtype, target);
    return {.matrix = {.values_NC = made.tensor}, .read = made.read};
  }
  auto rows = codes_of(plan, target);
  if (!plan.is_drawn()) {
    const auto read = quantize_stored(plan, target, rows);
    return {.matrix = rows.codes(), .read = read};
  }
  quantize_drawn(plan, target, rows);
  return {.matrix = rows.codes(), .read = {}};
}

// ------------------------------------------------------------------------- as stored

// Codes of one range are used in the mapped file.
Assembled part_of(const StoredPart& part) {
  if (part.take == StoredPart::Take::kRowScales)
    return {.tensor = row_scales(part.ranges), .read = {}};
  const auto& first = part.ranges.front();
  const bool is_one_byte = part.dtype == at::kByte || part.dtype == at::kChar;
  if (!is_one_byte || part.ranges.size() > 1 || !part.columns.empty())
    return assemble(part.ranges, part.columns, part.dtype);
  const auto view = part.dtype == at::kByte ? bytes_in_place(first) : view_of(first);
  return {.tensor = view, .read = {.all = view.numel()}};
}

LoadedMatrix made_as_stored(const TensorPlan& plan) {
  LoadedMatrix made;
  for (const auto& part : stored_parts(plan)) {
    const auto [tensor, read] = part_of(part);
    tensor_of(made.matrix, part.which) = tensor;
    made.read += read;
  }
  return made;
}

// ------------------------------------------------------------------------- without contents

LoadedMatrix made_on_meta(const TensorPlan& plan) {
  LoadedMatrix made{.matrix = {}, .read = {.all = bytes_read_by(plan)}};
  const auto kept = kept_tensors(plan);
  const auto forms = forms_of(plan);
  for (std::size_t i = 0; i < kept.size(); ++i)
    tensor_of(made.matrix, kept[i].which) =
        at::empty(forms[i].shape, at::TensorOptions(forms[i].dtype).device(at::kMeta));
  return made;
}

LoadedMatrix made_with_contents(const TensorPlan& plan, const Target& target) {
  auto made = plan.take == Take::kNumbers ? made_of_numbers(plan, target) : made_as_stored(plan);
  auto& values = made.matrix.values_NC;
  if (plan.stored_columns > 0 && plan.changes.is_empty())
    values = with_columns(values, plan.shape[1]);
  return made;
}

}  // namespace

Tensor make_table(const TensorPlan& plan, at::Device device) {
  if (!device.is_meta())
    return is_in_place(plan) ? plan.stored().tensors.front()->view()
                             : make(plan, at::kCPU).matrix.values_NC;
  const auto form = forms_of(plan).front();
  const std::vector<std::int64_t> strides(form.shape.size(), 0);
  return at::for_blob(nullptr, form.shape)
      .strides(strides)
      .target_device(at::kMeta)
      .options(at::TensorOptions(form.dtype).device(at::kMeta))
      .make_tensor();
}

LoadedMatrix make(const TensorPlan& plan, const Target& target) {
  auto made = target.device.is_meta() ? made_on_meta(plan) : made_with_contents(plan, target);
  made.matrix.form = plan.form;
  made.matrix.coding = coding_of(plan);
  return made;
}

}  // namespace braid
