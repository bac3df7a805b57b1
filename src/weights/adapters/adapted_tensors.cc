#include "weights/adapters/adapted_tensors.h"

#include <ATen/ATen.h>

#include <algorithm>

#include "base/error.h"
#include "weights/adapters/apply.h"
#include "weights/codes/float8.h"
#include "weights/codes/int8.h"
#include "weights/sources/identity.h"

namespace braid {
namespace {

constexpr std::int64_t kNumbersQuantisedAtOnce = std::int64_t(1) << 22;

// A tensor with its changes, and the form a load wants it in.
struct Adapted {
  Recipe base;  // float32; whole where something is yet to be cut
  AdapterChanges changes;
  Wanted wanted;  // of the base
  Wanted cut;     // after the changes; nothing where empty
  at::ScalarType dtype;
  Quantize form;
};

// A few rows at a time, so that the numbers are never duplicated beside their codes.
Matrix quantised(const Tensor& rows_NC, const Adapted& a) {
  const auto at_once = std::max<std::int64_t>(1, kNumbersQuantisedAtOnce / rows_NC.size(1));
  std::vector<Tensor> codes, scales;
  for (const auto& run : rows_NC.split(at_once)) {
    const auto made = share_of_columns(quantize_rows(run.to(a.dtype), a.form), a.cut.columns);
    codes.push_back(made.values_NC);
    scales.push_back(made.scales_N1);
  }
  return {.form = a.form,
          .values_NC = at::cat(codes),
          .scales_N1 = at::cat(scales),
          .coding = coding_of(a.form)};
}

LoadedMatrix make(const Adapted& a, const Target& target) {
  const auto loaded = a.base.make(target);
  const auto& values = loaded.matrix.values_NC;
  apply(a.changes.changes, a.wanted, values.dim() > 2 ? values.view({values.size(0), -1}) : values);
  const auto numbers = taken_rows(loaded.matrix.values_NC, a.cut.rows);
  if (a.form != Quantize::kNone) return {.matrix = quantised(numbers, a), .read = loaded.read};
  return {.matrix = {.values_NC = taken_columns(numbers, a.cut.columns).to(a.dtype)},
          .read = loaded.read};
}

std::vector<TensorForm> forms_of(const Adapted& a) {
  auto shape = a.base.tensors.front().shape;
  if (!a.cut.rows.empty()) shape[0] = total_count(a.cut.rows);
  if (!a.cut.columns.empty()) shape[1] = total_count(a.cut.columns);
  if (a.form == Quantize::kNone) return {{a.dtype, shape}};
  return {{type_of_codes(a.form), shape},
          {a.form == Quantize::kInt8V1 ? a.dtype : at::kFloat, {shape[0], 1}}};
}

Recipe recipe_of(const Adapted& a) {
  const auto as = a.form == Quantize::kNone ? text_of(a.dtype) : identity_of(a.form, a.dtype);
  return {.form = a.form,
          .coding = coding_of(a.form),
          .bytes = a.base.bytes,
          .tensors = forms_of(a),
          .identity =
              [a, as] {
                return text_of(a.base.identity(), " at rows", identity_of(a.wanted.rows),
                               " changed by ", a.changes.identity(), " rows",
                               identity_of(a.cut.rows), " ", identity_of(a.cut.columns), " as ",
                               as);
              },
          .make = [a](const Target& target) { return make(a, target); }};
}

// The wanted rows and columns that the changes, or codes of whole rows, need the others for.
Wanted cut_last(const Delivery& delivery, const AdapterChanges& changes, Quantize form) {
  Wanted cut;
  if (form != Quantize::kNone || changes.need_all_columns()) cut.columns = delivery.wanted.columns;
  if (changes.need_all_rows()) cut.rows = delivery.wanted.rows;
  return cut;
}

// The same matrix of codes, with columns cut from its whole rows.
Recipe with_columns(Recipe recipe, const std::vector<Share>& columns) {
  if (columns.empty()) return recipe;
  recipe.tensors.front().shape[1] = total_count(columns);
  recipe.identity = [=, of_rows = recipe.identity] { return of_rows() + identity_of(columns); };
  recipe.make = [=, of_rows = recipe.make](const Target& target) {
    auto made = of_rows(target);
    made.matrix = share_of_columns(made.matrix, columns);
    return made;
  };
  return recipe;
}

class AdaptedTensors : public TensorSource {
 public:
  AdaptedTensors(std::shared_ptr<TensorSource> source, std::vector<AppliedAdapter> adapters,
                 AdapterMode mode, std::shared_ptr<UnmergedAdapters> unmerged)
      : source_(std::move(source)),
        adapters_(std::move(adapters)),
        mode_(mode),
        unmerged_(std::move(unmerged)),
        used_(adapters_.size()) {
    for (const auto& adapter : adapters_)
      names_.push_back(names_in(*adapter.file, unmerged_->part().names));
  }

  const std::string& name() const override { return source_->name(); }
  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override;
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override {
    const auto bytes = source_->finish();
    unmerged_->apply(adapters_);
    report_unused(unmerged_->part(), adapters_, used_);
    return bytes;
  }

 private:
  AdapterChanges changes_of(const AskedTensor& asked);
  std::optional<Recipe> find_unchanged(AskedTensor& asked, const Delivery& delivery);
  std::optional<Recipe> find_changed(AskedTensor& asked, const Delivery& delivery,
                                     const AdapterChanges& changes);

  const std::shared_ptr<TensorSource> source_;
  const std::vector<AppliedAdapter> adapters_;
  const AdapterMode mode_;
  const std::shared_ptr<UnmergedAdapters> unmerged_;
  std::vector<AdapterNames> names_;  // by adapter
  UsedTensors used_;
};

// The changes of all adapters, in order.
AdapterChanges AdaptedTensors::changes_of(const AskedTensor& asked) {
  AdapterChanges all;
  if (asked.kind == AskedTensor::Kind::kTable) return all;
  const auto& shardings = unmerged_->part().shardings;
  for (std::size_t i = 0; i < adapters_.size(); ++i) {
    const auto found = AdapterSearch{adapters_[i], names_[i], shardings}.changes_of(asked);
    all.changes.insert(all.changes.end(), found.changes.begin(), found.changes.end());
    all.stored.insert(all.stored.end(), found.stored.begin(), found.stored.end());
    for (const auto& stored : found.stored) used_[i].insert(stored.entry.name);
  }
  return all;
}

// A weight with products beside it stays unchanged itself.
std::optional<Recipe> AdaptedTensors::find_unchanged(AskedTensor& asked, const Delivery& delivery) {
  const bool is_matrix = asked.kind == AskedTensor::Kind::kMatrix;
  if (!is_matrix && mode_ == AdapterMode::kUnmerged) unmerged_->watch(asked);
  auto recipe = source_->find(asked, delivery);
  if (recipe && is_matrix && mode_ == AdapterMode::kUnmerged)
    recipe->low_rank = unmerged_->add(asked, delivery.wanted);
  return recipe;
}

// Magnitudes and code scales apply to whole rows or columns, so these are then cut last. Blocks
// stay as stored if possible, with the products beside them.
std::optional<Recipe> AdaptedTensors::find_changed(AskedTensor& asked, const Delivery& delivery,
                                                   const AdapterChanges& changes) {
  const bool is_matrix = asked.kind == AskedTensor::Kind::kMatrix;
  const auto form = is_matrix ? delivery.numbers : Quantize::kNone;
  const auto cut = cut_last(delivery, changes, form);
  auto in_float = asked;
  in_float.dtype = at::kFloat;
  auto base = delivery;
  base.numbers = Quantize::kNone;
  const bool may_stay_unmerged =
      mode_ == AdapterMode::kAuto && form == Quantize::kNone && changes.are_products();
  if (!may_stay_unmerged) base.packed = PackedWeights::kWidened;
  if (!cut.columns.empty()) base.wanted.columns.clear();
  if (!cut.rows.empty()) base.wanted.rows = {{.begin = 0, .count = asked.shape[0]}};
  auto recipe = source_->find(in_float, base);
  asked.stored = std::move(in_float.stored);
  asked.stored.insert(asked.stored.end(), changes.stored.begin(), changes.stored.end());
  if (!recipe) return recipe;
  if (recipe->coding) {
    recipe->low_rank = unmerged_->add(asked, delivery.wanted);
    return recipe;
  }
  if (recipe->form == Quantize::kNone)
    return recipe_of({.base = *std::move(recipe),
                      .changes = changes,
                      .wanted = base.wanted,
                      .cut = cut,
                      .dtype = asked.dtype,
                      .form = form});
  require(mode_ == AdapterMode::kAuto && cut.rows.empty(), name(), ": the weight of ", asked.layer,
          " is stored in 8 bits: an adapter cannot be fused into it, only stay beside it");
  auto codes = with_columns(*std::move(recipe), cut.columns);
  codes.low_rank = unmerged_->add(asked, delivery.wanted);
  return codes;
}

std::optional<Recipe> AdaptedTensors::find(AskedTensor& asked, const Delivery& delivery) {
  const auto changes = changes_of(asked);
  const bool is_matrix = asked.kind == AskedTensor::Kind::kMatrix;
  require(changes.changes.empty() || is_matrix || mode_ != AdapterMode::kUnmerged,
          changes.stored.empty() ? "" : changes.stored.front().file->path().string(), " changes ",
          asked.path(), ", which is not a matrix: it can only be fused");
  return changes.changes.empty() || mode_ == AdapterMode::kUnmerged
             ? find_unchanged(asked, delivery)
             : find_changed(asked, delivery, changes);
}

}  // namespace

std::shared_ptr<TensorSource> adapted_tensors(std::shared_ptr<TensorSource> source,
                                              std::vector<AppliedAdapter> adapters,
                                              AdapterMode mode,
                                              std::shared_ptr<UnmergedAdapters> unmerged) {
  if (adapters.empty() && mode != AdapterMode::kUnmerged) return source;
  return std::make_shared<AdaptedTensors>(std::move(source), std::move(adapters), mode,
                                          std::move(unmerged));
}

}  // namespace braid
