#include "pipeline/dry/dry_tensors.h"

#include <ATen/ATen.h>

namespace braid {
namespace {

Tensor without_numbers(const TensorForm& form) {
  return at::empty(form.shape, at::TensorOptions(form.dtype).device(at::kMeta));
}

// A table stays where it is stored: it takes nothing.
Tensor table_without_numbers(const TensorForm& form) {
  const std::vector<std::int64_t> strides(form.shape.size(), 0);
  return at::for_blob(nullptr, form.shape)
      .strides(strides)
      .target_device(at::kMeta)
      .options(at::TensorOptions(form.dtype).device(at::kMeta))
      .make_tensor();
}

class DryTensors : public TensorSource {
 public:
  explicit DryTensors(std::shared_ptr<TensorSource> source) : source_(std::move(source)) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override {
    auto recipe = source_->find(asked, delivery);
    if (!recipe) return recipe;
    recipe->in_place = {};
    recipe->make = [recipe = *recipe,
                    is_table = asked.kind == AskedTensor::Kind::kTable](const Target&) {
      const auto& tensors = recipe.tensors;
      Matrix matrix{
          .form = recipe.form,
          .values_NC = is_table ? table_without_numbers(tensors[0]) : without_numbers(tensors[0]),
          .coding = recipe.coding};
      if (tensors.size() > 1) matrix.scales_N1 = without_numbers(tensors[1]);
      return LoadedMatrix{.matrix = std::move(matrix), .read = {.all = recipe.bytes}};
    };
    return recipe;
  }
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  std::shared_ptr<TensorSource> source_;
};

}  // namespace

std::shared_ptr<TensorSource> dry_tensors(std::shared_ptr<TensorSource> source) {
  return std::make_shared<DryTensors>(std::move(source));
}

}  // namespace braid
