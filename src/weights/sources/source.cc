#include "weights/sources/source.h"

namespace braid {
namespace {

class SyntheticTensors : public TensorSource {
 public:
  const std::string& name() const override { return name_; }

  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override {
    const bool is_matrix = asked.kind == AskedTensor::Kind::kMatrix;
    return recipe_of_synthetic({.values = &values_,
                                .path = asked.path(),
                                .shape = asked.shape,
                                .wanted = delivery.wanted,
                                .dtype = asked.dtype},
                               is_matrix ? delivery.numbers : Quantize::kNone);
  }

 private:
  const std::string name_ = "synthetic weights";
  const SyntheticValues values_;
};

class UnreadTensors : public TensorSource {
 public:
  explicit UnreadTensors(std::shared_ptr<TensorSource> source) : source_(std::move(source)) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override {
    (void)source_->find(asked, delivery);
    return {};
  }
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  const std::shared_ptr<TensorSource> source_;
};

class SurveyedTensors : public UnreadTensors {
 public:
  SurveyedTensors(std::shared_ptr<TensorSource> source, std::vector<AskedTensor>& asked)
      : UnreadTensors(std::move(source)), all_(asked) {}

  std::optional<Recipe> find(AskedTensor& asked, const Delivery& delivery) override {
    (void)UnreadTensors::find(asked, delivery);
    all_.push_back(asked);
    return {};
  }

 private:
  std::vector<AskedTensor>& all_;
};

}  // namespace

std::shared_ptr<TensorSource> synthetic_tensors() { return std::make_shared<SyntheticTensors>(); }

std::shared_ptr<TensorSource> unread_tensors(std::shared_ptr<TensorSource> source) {
  return std::make_shared<UnreadTensors>(std::move(source));
}

std::shared_ptr<TensorSource> surveyed_tensors(std::shared_ptr<TensorSource> source,
                                               std::vector<AskedTensor>& asked) {
  return std::make_shared<SurveyedTensors>(std::move(source), asked);
}

}  // namespace braid
