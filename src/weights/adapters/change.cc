#include "weights/adapters/change.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <functional>
#include <set>
#include <tuple>
#include <utility>

#include "base/error.h"
#include "weights/sources/identity.h"
#include "weights/sources/row_ranges.h"

namespace braid {
namespace {

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

// peft's magnitudes are of outputs whatever their shape.
bool is_peft_magnitude(std::string_view tensor) {
  return tensor.find("lora_magnitude_vector") != tensor.npos;
}

// Numbers as stored, in rows.
Delta delta_of_numbers(const Tensor& numbers, double factor = 1) {
  const auto open = [numbers = numbers.to(at::kFloat) * factor](at::Device device) {
    return [there = numbers.to(device)](Share rows) {
      return there.narrow(0, rows.begin, rows.count);
    };
  };
  return {.rows = numbers.size(0), .columns = numbers.size(1), .factor = factor, .open = open};
}

Delta delta_of_vector(const Tensor& vector, double factor = 1) {
  return delta_of_numbers(vector.reshape({-1, 1}), factor);
}

// A module of a file, and the rows that it changes.
struct Given {
  const AdapterModule* module;
  AdapterTarget target;

  bool is_inside(const Given& other) const {
    const auto &mine = target.rows, &rows = other.target.rows;
    return mine.begin >= rows.begin && mine.begin + mine.count <= rows.begin + rows.count &&
           mine.count < rows.count;
  }
  bool meets(const Given& other) const {
    const auto &mine = target.rows, &rows = other.target.rows;
    return mine.begin < rows.begin + rows.count && rows.begin < mine.begin + mine.count;
  }
};

// Collects one file's changes to one of our tensors.
class Found {
 public:
  Found(const AdapterSearch& search, const TensorRequest& asked) : search_(search), asked_(asked) {}

  void add_targets();
  void add_named_tensors();
  AdapterChanges found;

 private:
  const AdapterFile& file() const { return *search_.adapter.file; }
  bool is_bias() const { return asked_.name == "bias"; }
  bool is_vector() const { return asked_.shape.size() == 1; }
  // The numbers of a row; a convolution's has all channels of its window.
  std::int64_t width() const {
    return c10::multiply_integers(asked_.shape) / std::max<std::int64_t>(1, asked_.shape[0]);
  }
  std::string where(const AdapterModule& module) const {
    return text_of(file().source(), ": '", module.name, "'");
  }
  bool replaces(const AdapterModule& module) const {
    return module.find(AdapterRole::kReplacement) ||
           (!is_bias() && module.find(AdapterRole::kWhole));
  }
  // "a.bias.diff", where other files have "a.diff_b".
  bool is_of_whole_bias(const AdapterModule& module) const {
    return is_bias() && underscored(module.name).ends_with("_bias");
  }
  bool changes_this(const AdapterModule& module) const;
  std::vector<Given> given() const;
  bool is_copy(std::size_t index, const std::vector<Given>& all) const;
  [[noreturn]] void refuse_both(const Given& one, const Given& other) const;
  void use(const AdapterModule& module);
  void check_readable(const AdapterModule& module) const;
  std::optional<Delta> bias_delta(const AdapterModule& module, const AdapterTarget& target) const;
  std::optional<Delta> delta_for(const AdapterModule& module, const AdapterTarget& target) const;
  void add_magnitudes(Change& change, const AdapterModule& module,
                      const AdapterTarget& target) const;
  void check_fit(const Delta& delta, const AdapterModule& module, std::int64_t rows) const;
  std::string looks() const { return likeness_clause(search_.names, file()); }
  void add(const AdapterModule& module, const AdapterTarget& target);
  void add_named(const AdapterModule& module, AdapterRole role);

  const AdapterSearch& search_;
  const TensorRequest& asked_;
};

void Found::use(const AdapterModule& module) {
  for (const auto& [role, stored] : module.tensors)
    if (is_of_bias(role) == is_bias() || role == AdapterRole::kReplacement ||
        is_of_whole_bias(module))
      found.stored.push_back(stored);
}

// The change of a bias: as stored, or a product's own bias, which its factor scales too.
std::optional<Delta> Found::bias_delta(const AdapterModule& module,
                                       const AdapterTarget& target) const {
  using Role = AdapterRole;
  for (const auto role : {Role::kBiasDifference, Role::kReplacement, Role::kDifference}) {
    const auto* const stored = module.find(role);
    if (stored && (role != Role::kDifference || is_of_whole_bias(module)))
      return delta_of_vector(finite_numbers(file(), *stored));
  }
  const auto* const stored = module.find(AdapterRole::kUpBias);
  if (!stored) return {};
  return delta_of_vector(finite_numbers(file(), *stored), factor_of(file(), module, target));
}

void Found::check_readable(const AdapterModule& module) const {
  const auto* const stored = module.find(AdapterRole::kUnreadable);
  const auto name = stored ? stored->entry.name : "";
  require(!stored, file().source(), ": '", name, "' is of the kind ", unreadable_kind(name),
          ", which Braid cannot apply: it applies LoRA, DoRA, LoHa, LoKr and differences");
}

// A norm's weight may have a difference or be replaced, too.
std::optional<Delta> Found::delta_for(const AdapterModule& module,
                                      const AdapterTarget& target) const {
  if (is_bias()) return bias_delta(module, target);
  using Role = AdapterRole;
  for (const auto role : {Role::kDifference, Role::kWhole, Role::kReplacement})
    if (const auto* const stored = module.find(role); stored && is_vector())
      return delta_of_vector(finite_numbers(file(), *stored));
  auto delta = delta_of(file(), module, target);
  const auto& [layer, inputs] = search_.names.grown;
  const bool is_narrow = delta && asked_.layer == layer && delta->columns == inputs;
  if (is_narrow && !replaces(module) && asked_.shape.size() == 2 && asked_.shape[1] > inputs)
    return with_columns(*delta, asked_.shape[1]);
  return delta;
}

// peft and sd-scripts have one per output: [N] or [N 1], for convolutions [N 1 1 1 1] or peft's
// [1 N 1 1 1]. LyCORIS and OneTrainer may have one per input instead: [1 C], [1 C 1 1 1].
void Found::add_magnitudes(Change& change, const AdapterModule& module,
                           const AdapterTarget& target) const {
  const auto* const stored = module.find(AdapterRole::kMagnitude);
  if (!stored || is_bias()) return;
  const auto numbers = finite_numbers(file(), *stored).to(at::kFloat);
  const auto rows = change.delta.rows;
  const auto inputs = asked_.shape.size() > 1 ? asked_.shape[1] : 1;
  const bool is_row_like = numbers.dim() > 1 && numbers.size(0) == 1;
  const bool is_peft = is_peft_magnitude(stored->entry.name);
  const bool is_row = is_row_like && numbers.size(1) == inputs && numbers.numel() == inputs &&
                      !(is_peft && inputs == rows);
  const auto dim_of_rows = numbers.dim() > 2 && is_row_like ? 1 : 0;
  const bool is_column =
      numbers.numel() == rows && numbers.dim() > 0 && numbers.size(dim_of_rows) == rows;
  if (!is_column && !is_row)
    throw InputError(text_of(file().source(), ": tensor '", stored->entry.name,
                             "' should have a magnitude for each of ", rows, " outputs or ", inputs,
                             " inputs, its shape is ", numbers.sizes(), looks()));
  if (is_row)
    change.lengths = {.rows = target.rows,
                      .lengths_1C = numbers.reshape({1, inputs}),
                      .window = width() / inputs};
  else
    change.magnitude_N = numbers.flatten();
}

void Found::check_fit(const Delta& delta, const AdapterModule& module, std::int64_t rows) const {
  if (delta.rows == rows && delta.columns == width()) return;
  throw InputError(text_of(where(module), " is for a ", is_bias() ? "bias" : "weight", " of [",
                           delta.rows, ", ", delta.columns, "], the model's ", asked_.path(),
                           rows == asked_.shape[0] ? "" : " there", " is [", rows, ", ", width(),
                           "]", looks()));
}

void Found::add(const AdapterModule& module, const AdapterTarget& target) {
  check_readable(module);
  const auto delta = delta_for(module, target);
  if (!delta) return;
  check_fit(*delta, module, target.rows.count);
  Change change{.rows = {},
                .from = 0,
                .scale = search_.adapter.scale,
                .delta = *delta,
                .lengths = {},
                .replaces = replaces(module),
                .keeps_lengths = delta->is_dora && !module.find(AdapterRole::kMagnitude)};
  add_magnitudes(change, module, target);
  const auto lengths = std::exchange(change.lengths, {});
  for (const auto& run : runs_of(target)) {
    std::tie(change.rows, change.from) = run;
    found.changes.push_back(change);
  }
  found.changes.back().lengths = lengths;
  use(module);
}

bool Found::changes_this(const AdapterModule& module) const {
  return std::ranges::any_of(module.tensors, [&](const auto& tensor) {
    const auto role = tensor.first;
    if (role == AdapterRole::kAlpha) return false;  // it scales a change, and is none
    return is_of_bias(role) == is_bias() || role == AdapterRole::kReplacement ||
           is_of_whole_bias(module);
  });
}

std::vector<Given> Found::given() const {
  std::vector<Given> all;
  std::set<const AdapterModule*> seen;  // two tables may yield the same name
  for (const auto& target :
       targets_of(search_.names, search_.shardings, asked_.layer, asked_.shape[0])) {
    for (const auto& name : {target.module + "_" + asked_.name, target.module}) {
      const auto* const module = file().find(name);
      if (module && changes_this(*module) && seen.insert(module).second)
        all.push_back({module, target});
    }
  }
  return all;
}

void Found::refuse_both(const Given& one, const Given& other) const {
  throw InputError(text_of(file().source(), " changes rows of ", asked_.path(), " twice, by '",
                           one.module->name, "' and by '", other.module->name, "'"));
}

// Some files have a joined module and all of its parts, or a module by two names, each with the
// whole change. diffusers' converter of Z-Image's takes the parts, and its own names, which tables
// have last. Otherwise nobody knows which of two is meant.
bool Found::is_copy(std::size_t index, const std::vector<Given>& all) const {
  const auto& one = all[index];
  std::int64_t in_parts = 0;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const auto& other = all[i];
    if (other.target.module == one.target.module || !one.meets(other)) continue;
    if (one.is_inside(other)) continue;
    if (other.is_inside(one))
      in_parts += other.target.rows.count;
    else if (other.target.name == one.target.name || !(other.target.rows == one.target.rows))
      refuse_both(one, other);
    else if (i > index)
      return true;
  }
  if (in_parts > 0 && in_parts != one.target.rows.count)
    refuse_both(one, *std::ranges::find_if(all, [&](const Given& g) { return g.is_inside(one); }));
  return in_parts > 0;
}

void Found::add_targets() {
  if (asked_.name != "weight" && !is_bias()) return;
  const auto all = given();
  for (std::size_t i = 0; i < all.size(); ++i)
    if (!is_copy(i, all)) add(*all[i].module, all[i].target);
}

void Found::add_named(const AdapterModule& module, AdapterRole role) {
  const auto* const stored = module.find(role);
  if (!stored || !found.changes.empty()) return;
  const auto numbers = finite_numbers(file(), *stored);
  if (!is_vector() && numbers.numel() != c10::multiply_integers(asked_.shape))
    throw InputError(text_of(where(module), " has the shape ", numbers.sizes(), ", the model's ",
                             asked_.path(), " has ", at::IntArrayRef(asked_.shape), looks()));
  const auto delta = is_vector() ? delta_of_vector(numbers)
                                 : delta_of_numbers(numbers.reshape({asked_.shape[0], width()}));
  check_fit(delta, module, asked_.shape[0]);
  found.changes.push_back({.rows = {.begin = 0, .count = asked_.shape[0]},
                           .from = 0,
                           .scale = search_.adapter.scale,
                           .delta = delta,
                           .lengths = {},
                           .replaces = role != AdapterRole::kDifference});
  found.stored.push_back(*stored);
}

// Tensors whose whole names precede what is done to them: norms ("norm.scale", "norm.scale.diff"),
// and those that are neither a weight nor a bias, like tokens for padding.
void Found::add_named_tensors() {
  if (!is_vector() && (asked_.name == "weight" || is_bias())) return;
  for (const auto& name : replacements_of(search_.names, asked_.path()))
    if (const auto* const module = file().find(name))
      for (const auto role :
           {AdapterRole::kReplacement, AdapterRole::kWhole, AdapterRole::kDifference})
        add_named(*module, role);
}

}  // namespace

bool Change::is_product() const {
  return delta.product && !magnitude_N.defined() && !lengths && !replaces && !keeps_lengths;
}

AdapterNames names_in(const AdapterFile& file, AdapterNames names) {
  std::erase_if(names.prefixes, [&](const std::string& prefix) {
    const auto first = file.modules().lower_bound(underscored(prefix));
    return first == file.modules().end() || !first->first.starts_with(underscored(prefix));
  });
  return names;
}

AdapterChanges AdapterSearch::changes_of(const TensorRequest& asked) const {
  if (asked.shape.empty()) return {};
  Found found(*this, asked);
  found.add_targets();
  found.add_named_tensors();
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
  return std::all_of(changes.begin(), changes.end(), std::mem_fn(&Change::is_product));
}

AdapterPlace AdapterChanges::place(AdapterMode mode) const {
  if (mode == AdapterMode::kUnmerged) return AdapterPlace::kUnmerged;
  const bool may_stay_beside = mode == AdapterMode::kAuto && are_products();
  return may_stay_beside ? AdapterPlace::kUnmergedFromStored : AdapterPlace::kNumbers;
}

bool AdapterChanges::need_all_columns() const {
  return std::any_of(changes.begin(), changes.end(), [](const Change& change) {
    return change.magnitude_N.defined() || change.keeps_lengths ||
           (change.lengths && change.lengths->window > 1);
  });
}

bool AdapterChanges::need_all_rows() const {
  return std::any_of(changes.begin(), changes.end(),
                     [](const Change& change) { return change.lengths.has_value(); });
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
                     std::hexfloat, c.scale, " ", c.delta.factor, c.replaces ? " replaced" : "",
                     c.keeps_lengths ? " kept" : "");
  return words;
}

}  // namespace braid
