#include "weights/sources/widened.h"

#include "base/error.h"

namespace braid {
namespace {

class WidenedTensors : public TensorSource {
 public:
  WidenedTensors(std::shared_ptr<TensorSource> source, WidenedLayer widened)
      : source_(std::move(source)), widened_(std::move(widened)) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<TensorPlan> find(const TensorRequest& request) override;
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  const std::shared_ptr<TensorSource> source_;
  const WidenedLayer widened_;
};

// A file's blocks cannot take extra columns, so they are decoded to numbers. Codes can: zeros.
std::optional<TensorPlan> WidenedTensors::find(const TensorRequest& request) {
  if (request.layer != widened_.layer || !request.is_matrix()) return source_->find(request);
  check(request.shard.columns.empty(), request.layer, " is widened and cannot share its inputs");
  auto narrow = request;
  narrow.shape[1] = widened_.stored_inputs;
  narrow.stored_codes = StoredCodes::kWidened;
  auto plan = source_->find(narrow);
  if (!plan) return plan;
  plan->shape[1] = request.shape[1];
  plan->stored_columns = widened_.stored_inputs;
  return plan;
}

}  // namespace

std::shared_ptr<TensorSource> widened_tensors(std::shared_ptr<TensorSource> source,
                                              WidenedLayer widened) {
  return std::make_shared<WidenedTensors>(std::move(source), std::move(widened));
}

}  // namespace braid
