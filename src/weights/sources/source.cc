#include "weights/sources/source.h"

namespace braid {
namespace {

class SyntheticTensors : public TensorSource {
 public:
  const std::string& name() const override { return name_; }

  std::optional<TensorPlan> find(const TensorRequest& request) override {
    return TensorPlan{.from = DrawnRows{values_, request.path()},
                      .shape = request.shape,
                      .shard = request.shard,
                      .dtype = request.dtype,
                      .form = request.form_of_numbers()};
  }

 private:
  const std::string name_ = "synthetic weights";
  const std::shared_ptr<const SyntheticValues> values_ = std::make_shared<const SyntheticValues>();
};

class UnreadTensors : public TensorSource {
 public:
  explicit UnreadTensors(std::shared_ptr<TensorSource> source) : source_(std::move(source)) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<TensorPlan> find(const TensorRequest& request) override {
    (void)source_->find(request);
    return {};
  }
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  const std::shared_ptr<TensorSource> source_;
};

class SurveyedTensors : public TensorSource {
 public:
  SurveyedTensors(std::shared_ptr<TensorSource> source, std::vector<SurveyedTensor>& asked)
      : source_(std::move(source)), all_(asked) {}

  const std::string& name() const override { return source_->name(); }
  std::optional<TensorPlan> find(const TensorRequest& request) override {
    if (auto plan = source_->find(request)) all_.push_back({request, *std::move(plan)});
    return {};
  }
  std::int64_t skip(const std::string& scope) override { return source_->skip(scope); }
  std::int64_t finish() override { return source_->finish(); }

 private:
  const std::shared_ptr<TensorSource> source_;
  std::vector<SurveyedTensor>& all_;
};

}  // namespace

std::shared_ptr<TensorSource> synthetic_tensors() { return std::make_shared<SyntheticTensors>(); }

std::shared_ptr<TensorSource> unread_tensors(std::shared_ptr<TensorSource> source) {
  return std::make_shared<UnreadTensors>(std::move(source));
}

std::shared_ptr<TensorSource> surveyed_tensors(std::shared_ptr<TensorSource> source,
                                               std::vector<SurveyedTensor>& asked) {
  return std::make_shared<SurveyedTensors>(std::move(source), asked);
}

}  // namespace braid
