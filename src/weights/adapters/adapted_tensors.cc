#include "weights/adapters/adapted_tensors.h"

#include <algorithm>

#include "base/error.h"

namespace braid {
namespace {

class AdaptedTensors : public TensorSource {
 public:
  AdaptedTensors(std::shared_ptr<TensorSource> source, std::vector<AppliedAdapter> adapters,
                 AdapterMode mode, std::shared_ptr<UnmergedAdapters> unmerged)
      : source_(std::move(source)),
        mode_(mode),
        unmerged_(std::move(unmerged)),
        adapters_(unmerged_->part(), std::move(adapters)),
        used_(adapters_.adapters().size()) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<TensorPlan> find(const TensorRequest& request) override;
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override {
    const auto bytes = source_->finish();
    unmerged_->apply(adapters_.adapters());
    const auto& part = unmerged_->part();
    report_unused(part, adapters_.adapters(), used_, part.warn);
    return bytes;
  }

 private:
  std::optional<TensorPlan> find_unchanged(const TensorRequest& request);
  std::optional<TensorPlan> find_changed(const TensorRequest& request,
                                         const AdapterChanges& changes);
  void require_beside_codes(const TensorRequest& request, const AdapterChanges& changes) const;

  const std::shared_ptr<TensorSource> source_;
  const AdapterMode mode_;
  const std::shared_ptr<UnmergedAdapters> unmerged_;
  const PartAdapters adapters_;
  UsedTensors used_;
};

// A weight with products beside it stays unchanged itself.
std::optional<TensorPlan> AdaptedTensors::find_unchanged(const TensorRequest& request) {
  const bool stands_beside = mode_ == AdapterMode::kUnmerged;
  if (!request.is_matrix() && stands_beside) unmerged_->watch(request);
  auto plan = source_->find(request);
  if (plan && request.is_matrix() && stands_beside) plan->low_rank = unmerged_->add(request);
  return plan;
}

// Changes of codes would be rounded a second time.
void AdaptedTensors::require_beside_codes(const TensorRequest& request,
                                          const AdapterChanges& changes) const {
  if (!changes.are_products()) {
    const auto by_adapter = adapters_.changes_by_adapter(request);
    const auto more = std::ranges::find_if_not(by_adapter, &AdapterChanges::are_products);
    throw InputError(text_of(
        more->stored.front().file->path().string(), " changes the weight of ", request.layer,
        " by more than a product of low rank, but ", name(), " is stored in 8 bits, which only ",
        "products can stay beside: merge it into the unquantized model (`braid convert`), and ",
        "quantize what comes out"));
  }
  require(mode_ == AdapterMode::kAuto, name(), ": the weight of ", request.layer,
          " is stored in 8 bits: an adapter cannot be fused into it, only stay beside it");
}

// Numbers are changed before they are rounded or quantized. What a file has in blocks or other
// forms stays as stored if possible, with the products beside it; its codes always do, rotated ones
// where the changes are products.
std::optional<TensorPlan> AdaptedTensors::find_changed(const TensorRequest& request,
                                                       const AdapterChanges& changes) {
  const auto form = request.form_of_numbers();
  auto base = request;
  base.stays_dense = true;
  if (changes.place(mode_) == AdapterPlace::kNumbers)
    base.stored_codes = StoredCodes::kWidened;
  else if (form != Quantize::kNone)
    base.stored_codes = std::min(request.stored_codes, StoredCodes::kRotatedKept);
  auto plan = source_->find(base);
  if (!plan) return plan;
  switch (plan->take) {
    case TensorPlan::Take::kNumbers:
      plan->form = form;
      plan->changes = changes;
      return plan;
    case TensorPlan::Take::kCodes:
      require_beside_codes(request, changes);
      break;
    case TensorPlan::Take::kStored:
      break;
  }
  plan->low_rank = unmerged_->add(request);
  return plan;
}

std::optional<TensorPlan> AdaptedTensors::find(const TensorRequest& request) {
  const auto by_adapter = adapters_.changes_by_adapter(request);
  add_used(by_adapter, used_);
  const auto changes = joined(by_adapter);
  require(changes.is_empty() || request.is_matrix() || mode_ != AdapterMode::kUnmerged,
          changes.stored.empty() ? "" : changes.stored.front().file->path().string(), " changes ",
          only_fused(request), ": it can only be fused");
  return changes.is_empty() || mode_ == AdapterMode::kUnmerged ? find_unchanged(request)
                                                               : find_changed(request, changes);
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
