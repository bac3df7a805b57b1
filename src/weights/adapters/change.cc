#include "weights/adapters/change.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <set>

#include "base/error.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

constexpr std::int64_t kNumbersChangedAtOnce = std::int64_t(1) << 22;

constexpr bool is_of_bias(AdapterRole role) {
  return role == AdapterRole::kUpBias || role == AdapterRole::kBiasDifference;
}

// The rows of `target` as runs of a module's rows: two if their halves are swapped.
std::vector<std::pair<Share, std::int64_t>> runs_of(const AdapterTarget& target) {
  std::vector<std::pair<Share, std::int64_t>> runs;
  auto begin = target.rows.begin;
  for (const auto& run : runs_in(target.order, target.rows.count)) {
    runs.push_back({{.begin = begin, .count = run.count}, run.begin});
    begin += run.count;
  }
  return runs;
}

Delta delta_of_vector(const Tensor& vector, double factor = 1) {
  const auto numbers = vector.to(at::kFloat).flatten() * factor;
  const auto open = [numbers](at::Device device) {
    return [there = numbers.to(device)](Share rows) {
      return there.narrow(0, rows.begin, rows.count);
    };
  };
  return {.rows = numbers.size(0), .columns = 1, .factor = factor, .open = open};
}

// Collects one file's changes to one of our tensors.
class Found {
 public:
  Found(const AdapterSearch& search, const AskedTensor& asked) : search_(search), asked_(asked) {}

  void add_targets();
  void add_named_vectors();
  AdapterChanges found;

 private:
  const AdapterFile& file() const { return *search_.adapter.file; }
  bool is_bias() const { return asked_.name == "bias"; }
  std::string where(const AdapterModule& module) const {
    return text_of(file().source(), ": '", module.name, "'");
  }
  bool replaces(const AdapterModule& module) const {
    return module.find(AdapterRole::kReplacement) ||
           (!is_bias() && module.find(AdapterRole::kWhole));
  }
  void use(const AdapterModule& module);
  void check_readable(const AdapterModule& module) const;
  std::optional<Delta> bias_delta(const AdapterModule& module, const AdapterTarget& target) const;
  std::optional<Delta> delta_for(const AdapterModule& module, const AdapterTarget& target) const;
  Tensor magnitude_of(const AdapterModule& module, std::int64_t rows) const;
  void check_fit(const Delta& delta, const AdapterModule& module, std::int64_t rows) const;
  void add(const AdapterModule& module, const AdapterTarget& target);
  void add_vector(const AdapterModule& module, AdapterRole role);

  const AdapterSearch& search_;
  const AskedTensor& asked_;
};

void Found::use(const AdapterModule& module) {
  for (const auto& [role, stored] : module.tensors)
    if (is_of_bias(role) == is_bias() || role == AdapterRole::kReplacement)
      found.stored.push_back(stored);
}

// The change of a bias: as stored, or a product's own bias, which its factor scales too.
std::optional<Delta> Found::bias_delta(const AdapterModule& module,
                                       const AdapterTarget& target) const {
  for (const auto role : {AdapterRole::kBiasDifference, AdapterRole::kReplacement})
    if (const auto* const stored = module.find(role))
      return delta_of_vector(finite_numbers(file(), *stored));
  const auto* const stored = module.find(AdapterRole::kUpBias);
  if (!stored) return {};
  return delta_of_vector(finite_numbers(file(), *stored), factor_of(file(), module, target));
}

void Found::check_readable(const AdapterModule& module) const {
  const auto* const stored = module.find(AdapterRole::kUnreadable);
  require(!stored, file().source(), ": '", stored ? stored->entry.name : "",
          "' belongs to a kind of adapter that Braid cannot apply");
}

// A norm's weight may have a difference or be replaced, too.
std::optional<Delta> Found::delta_for(const AdapterModule& module,
                                      const AdapterTarget& target) const {
  if (is_bias()) return bias_delta(module, target);
  using Role = AdapterRole;
  for (const auto role : {Role::kDifference, Role::kWhole, Role::kReplacement})
    if (const auto* const stored = module.find(role); stored && asked_.shape.size() == 1)
      return delta_of_vector(finite_numbers(file(), *stored));
  auto delta = delta_of(file(), module, target);
  const auto& [layer, inputs] = search_.names.grown;
  const bool is_narrow = delta && asked_.layer == layer && delta->columns == inputs;
  if (is_narrow && !replaces(module) && asked_.shape.size() == 2 && asked_.shape[1] > inputs)
    return with_columns(*delta, asked_.shape[1]);
  return delta;
}

Tensor Found::magnitude_of(const AdapterModule& module, std::int64_t rows) const {
  const auto* const stored = module.find(AdapterRole::kMagnitude);
  if (!stored) return {};
  auto numbers = finite_numbers(file(), *stored);
  const bool is_column = numbers.dim() == 1 || (numbers.dim() == 2 && numbers.size(1) == 1);
  require(is_column && numbers.size(0) == rows, file().source(), ": tensor '", stored->entry.name,
          "' should have a magnitude for each of ", rows, " outputs, its shape is ",
          numbers.sizes());
  return numbers.to(at::kFloat).flatten();
}

void Found::check_fit(const Delta& delta, const AdapterModule& module, std::int64_t rows) const {
  const auto columns = asked_.shape.size() < 2 ? 1 : asked_.shape[1];
  require(delta.rows == rows && delta.columns == columns, where(module), " is for a ",
          is_bias() ? "bias" : "weight", " of [", delta.rows, ", ", delta.columns,
          "], the model's ", asked_.path(), rows == asked_.shape[0] ? "" : " there", " is [", rows,
          ", ", columns, "]");
}

void Found::add(const AdapterModule& module, const AdapterTarget& target) {
  check_readable(module);
  const auto delta = delta_for(module, target);
  if (!delta) return;
  require(asked_.shape.size() <= 2, where(module), " is for a matrix, the model's ", asked_.path(),
          " has the shape ", asked_.shape);
  check_fit(*delta, module, target.rows.count);
  const auto magnitude = is_bias() ? Tensor() : magnitude_of(module, delta->rows);
  for (const auto& [rows, from] : runs_of(target))
    found.changes.push_back({.rows = rows,
                             .from = from,
                             .scale = search_.adapter.scale,
                             .delta = *delta,
                             .magnitude_N = magnitude,
                             .replaces = replaces(module)});
  use(module);
}

void Found::add_targets() {
  if (asked_.name != "weight" && !is_bias()) return;
  std::set<const AdapterModule*> seen;  // two tables may yield the same name
  for (const auto& target :
       targets_of(search_.names, search_.shardings, asked_.layer, asked_.shape[0])) {
    for (const auto& name : {target.module + "_" + asked_.name, target.module})
      if (const auto* const module = file().find(name); module && seen.insert(module).second)
        add(*module, target);
  }
}

void Found::add_vector(const AdapterModule& module, AdapterRole role) {
  const auto* const stored = module.find(role);
  if (!stored || !found.changes.empty()) return;
  const auto delta = delta_of_vector(finite_numbers(file(), *stored));
  check_fit(delta, module, asked_.shape[0]);
  found.changes.push_back({.rows = {.begin = 0, .count = asked_.shape[0]},
                           .from = 0,
                           .scale = search_.adapter.scale,
                           .delta = delta,
                           .replaces = role != AdapterRole::kDifference});
  found.stored.push_back(*stored);
}

// Vectors whose whole names precede what is done to them: "norm.scale", "norm.scale.diff".
void Found::add_named_vectors() {
  if (asked_.shape.size() != 1) return;
  for (const auto& name : replacements_of(search_.names, asked_.path()))
    if (const auto* const module = file().find(name))
      for (const auto role :
           {AdapterRole::kReplacement, AdapterRole::kWhole, AdapterRole::kDifference})
        add_vector(*module, role);
}

void apply_to_rows(const Change& change, const Tensor& made, Tensor target,
                   std::int64_t module_row) {
  if (change.replaces) {
    change.scale == 1 ? target.copy_(made) : target.lerp_(made, change.scale);
    return;
  }
  target.add_(made, change.scale);
  if (!change.magnitude_N.defined()) return;
  const auto magnitude = change.magnitude_N.narrow(0, module_row, target.size(0)).unsqueeze(1);
  target.mul_(magnitude.to(target.device()) / target.norm(2, {1}, /*keepdim=*/true));
}

void apply(const Change& change, const Wanted& wanted, const Tensor& share) {
  const auto rows_of = change.delta.open(share.device());
  const auto at_once = std::max<std::int64_t>(
      1, kNumbersChangedAtOnce / std::max<std::int64_t>(1, change.delta.columns));
  const auto end = change.rows.begin + change.rows.count;
  std::int64_t local = 0;  // the share's row where the run begins
  for (const auto& run : wanted.rows) {
    const auto last = std::min(end, run.begin + run.count);
    for (auto row = std::max(change.rows.begin, run.begin); row < last; row += at_once) {
      const auto count = std::min(at_once, last - row);
      const auto from = change.from + row - change.rows.begin;
      apply_to_rows(change, taken_columns(rows_of({.begin = from, .count = count}), wanted.columns),
                    share.narrow(0, local + row - run.begin, count), from);
    }
    local += run.count;
  }
}

}  // namespace

AdapterNames names_in(const AdapterFile& file, AdapterNames names) {
  std::erase_if(names.prefixes, [&](const std::string& prefix) {
    const auto first = file.modules().lower_bound(underscored(prefix));
    return first == file.modules().end() || !first->first.starts_with(underscored(prefix));
  });
  return names;
}

AdapterChanges AdapterSearch::changes_of(const AskedTensor& asked) const {
  if (asked.shape.empty()) return {};
  Found found(*this, asked);
  found.add_targets();
  found.add_named_vectors();
  return std::move(found.found);
}

std::optional<std::int64_t> inputs_of(const AdapterFile& file, const AdapterNames& names,
                                      const std::string& layer, std::int64_t num_rows) {
  for (const auto& target : targets_of(names_in(file, names), {}, layer, num_rows)) {
    const auto* const module = file.find(target.module);
    const auto* const down = module ? module->find(AdapterRole::kDown) : nullptr;
    if (down && down->entry.shape.size() == 2) return down->entry.shape[1];
  }
  return {};
}

bool AdapterChanges::are_products() const {
  return std::all_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.delta.product && !change.magnitude_N.defined() && !change.replaces;
  });
}

std::int64_t AdapterChanges::rank() const {
  std::int64_t sum = 0;
  for (const auto& change : changes)
    if (change.delta.product) sum += change.delta.product->down_RC.size(0);
  return sum;
}

std::string AdapterChanges::identity() const {
  std::string words = identity_of(stored);
  for (const auto& c : changes)
    words += text_of(" rows ", c.rows.begin, "+", c.rows.count, " from ", c.from, " times ",
                     std::hexfloat, c.scale, " ", c.delta.factor, c.replaces ? " replaced" : "");
  return words;
}

Tensor taken_columns(const Tensor& rows, const std::vector<Share>& columns) {
  if (columns.empty()) return rows;
  std::vector<Tensor> runs;
  for (const auto& run : columns) runs.push_back(rows.narrow(1, run.begin, run.count));
  return at::cat(runs, 1);
}

void apply(const std::vector<Change>& changes, const Wanted& wanted, const Tensor& share) {
  for (const auto& change : changes) apply(change, wanted, share);
}

}  // namespace braid
