#include "weights/sources/widened.h"

#include <ATen/ATen.h>

#include "base/error.h"

namespace braid {
namespace {

class WidenedTensors : public TensorSource {
 public:
  WidenedTensors(std::shared_ptr<TensorSource> source, WidenedLayer widened)
      : source_(std::move(source)), widened_(std::move(widened)) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override;
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  const std::shared_ptr<TensorSource> source_;
  const WidenedLayer widened_;
};

// A file's blocks cannot take extra columns, so they are decoded to numbers. Codes can: zeros.
std::optional<Recipe> WidenedTensors::find(AskedTensor& asked, const Delivery& delivery) {
  if (asked.layer != widened_.layer || asked.kind != AskedTensor::Kind::kMatrix)
    return source_->find(asked, delivery);
  check(delivery.wanted.columns.empty(), asked.layer, " is widened and cannot share its inputs");
  auto narrow = asked;
  narrow.shape[1] = widened_.stored_inputs;
  auto as_numbers = delivery;
  as_numbers.packed = PackedWeights::kWidened;
  auto recipe = source_->find(narrow, as_numbers);
  asked.stored = narrow.stored;
  if (!recipe) return recipe;
  const auto columns = asked.shape[1];
  recipe->tensors.front().shape[1] = columns;
  recipe->in_place = {};
  recipe->identity = [=, of_stored = recipe->identity] {
    return of_stored() + text_of(" widened to ", columns);
  };
  recipe->make = [=, of_stored = recipe->make](const Target& target) {
    auto made = of_stored(target);
    auto& values = made.matrix.values_NC;
    values = at::constant_pad_nd(values, {0, columns - values.size(1)});
    return made;
  };
  return recipe;
}

}  // namespace

std::shared_ptr<TensorSource> widened_tensors(std::shared_ptr<TensorSource> source,
                                              WidenedLayer widened) {
  return std::make_shared<WidenedTensors>(std::move(source), std::move(widened));
}

}  // namespace braid
