#include "weights/adapters/apply.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <limits>

#include "weights/sources/row_ranges.h"

namespace braid {
namespace {

constexpr std::int64_t kNumbersChangedAtOnce = std::int64_t(1) << 22;

// The least length to divide by: zeros stay zeros.
constexpr float kLeastLength = std::numeric_limits<float>::epsilon();

void apply_to_rows(const Change& change, const Tensor& made, Tensor target,
                   std::int64_t module_row) {
  if (change.replaces) {  // at any scale, as in diffusers and ComfyUI; at 0 nothing is applied
    if (change.scale != 0) target.copy_(made);
    return;
  }
  const auto lengths_of = [](const Tensor& rows) { return rows.norm(2, {1}, /*keepdim=*/true); };
  const auto before = change.keeps_lengths ? lengths_of(target) : Tensor();
  target.add_(made, change.scale);
  if (!change.magnitude_N.defined() && !change.keeps_lengths) return;
  const auto magnitude =
      change.keeps_lengths ? before
                           : change.magnitude_N.narrow(0, module_row, target.size(0)).unsqueeze(1);
  const auto lengths = lengths_of(target).clamp_min(kLeastLength);
  target.mul_(magnitude.to(target.device()) / lengths);
}

// A channel is all columns of its window.
void apply_column_norms(const ColumnLengths& lengths, const Shard& shard, const Tensor& numbers) {
  const auto rows = numbers.narrow(0, lengths.rows.begin, lengths.rows.count);
  const auto channels = rows.unflatten(1, {-1, lengths.window});
  const std::vector<std::int64_t> all_but_channels = {0, 2};
  const auto own = channels.norm(2, all_but_channels, /*keepdim=*/true).clamp_min(kLeastLength);
  const auto target_norms = taken(lengths.lengths_1C, 1, shard.columns).to(numbers.device());
  channels.mul_(target_norms.unsqueeze(2) / own);
}

void apply(const Change& change, const Shard& shard, const Tensor& numbers) {
  const auto rows_of = change.delta.open(numbers.device());
  const auto at_once = rows_at_once(kNumbersChangedAtOnce, change.delta.columns);
  const auto end = change.rows.begin + change.rows.count;
  std::int64_t local = 0;  // the shard's row where the run begins
  for (const auto& run : shard.rows) {
    const auto last = std::min(end, run.begin + run.count);
    for (auto row = std::max(change.rows.begin, run.begin); row < last; row += at_once) {
      const auto count = std::min(at_once, last - row);
      const auto from = change.from + row - change.rows.begin;
      apply_to_rows(change, taken(rows_of({.begin = from, .count = count}), 1, shard.columns),
                    numbers.narrow(0, local + row - run.begin, count), from);
    }
    local += run.count;
  }
  if (change.lengths) apply_column_norms(*change.lengths, shard, numbers);
}

}  // namespace

void apply(const std::vector<Change>& changes, const Shard& shard, const Tensor& numbers) {
  for (const auto& change : changes) apply(change, shard, numbers);
}

}  // namespace braid
